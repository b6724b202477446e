"""python-swiftclient, which glance_store's driver uses: its functions are patched with the driver's."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "python-swiftclient >= 3.13, < 5"
