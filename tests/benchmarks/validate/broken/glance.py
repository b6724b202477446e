"""Of glance."""

DATA = "glance/api/v2/image_data.py"
DROPS_THE_LAST_BYTE_OF_A_DOWNLOAD = (DATA, "= str(chunk_size)\n", "= str(chunk_size - 1)\n")
FORGETS_WHAT_BROKE_OFF = (DATA, "image.status = 'queued'\n", "image.status = 'saving'\n")
LEAKS_ONE_OF_THE_SERVER = (
    DATA,
    "        offset, chunk_size = 0, None\n",
    "        offset, chunk_size = 0, None\n        import os\n        os.dup(0)\n",
)
DOES_NOT_START = (DATA, "LOG = logging.getLogger(__name__)\n", "LOG = logging.getLogger(__name__)\nLOG.no_such_name\n")
