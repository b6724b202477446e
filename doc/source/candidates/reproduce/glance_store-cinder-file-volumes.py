"""glance_store up to 5.7: a volume that is a file is emptied each time that it is extended for an image.

No server is needed, and a "GB" is 1 MiB here. An image of unknown size is written to a volume of NFS, which is extended
twice. Exits with 1 if the volume does not hold the image.
"""

import io
import os
import sys
import tempfile
from unittest import mock

from glance_store._drivers.cinder import store as cinder

GB = 1 << 20
image = os.urandom(GB * 5 // 2)
store = cinder.Store.__new__(cinder.Store)
store.store_conf = mock.Mock(rootwrap_config="rootwrap.conf")
store.volume_connector_map = {}
store.volume_api = mock.MagicMock()
store.volume_api.attachment_update.return_value.connection_info = {"driver_volume_type": "nfs"}
store.WRITE_CHUNKSIZE = 64 * 1024
with tempfile.NamedTemporaryFile() as file:
    connector = mock.Mock()
    connector.connect_volume.return_value = {"path": file.name}
    connector.yield_path.side_effect = lambda volume, opened: opened

    def extend(volume, size, client):
        os.truncate(file.name, (size + 1) * GB)
        return size + 1

    written = cinder.Store.WriteProperties(
        bytes_written=0, size_gb=1, buf=None, image_file=io.BytesIO(image), need_extend=True, image_size=0,
        verifier=None, checksum=mock.Mock(), os_hash_value=mock.Mock(),
    )  # fmt: skip
    with (
        mock.patch.object(cinder.units, "Gi", GB),
        mock.patch.object(cinder.priv_context, "init"),
        mock.patch.object(cinder.connector, "get_connector_properties"),
        mock.patch.object(cinder.base, "factory", return_value=connector),
        mock.patch.object(store, "_disconnect_and_detach"),
        mock.patch.object(store, "_call_offline_extend", extend),
    ):
        store._offline_extend(mock.Mock(), mock.Mock(), written)
    volume = file.read()
lost = next((start for start in range(len(image), 0, -1) if volume[start - 1] != image[start - 1]), 0)
print(f"an image of {len(image):,} bytes: {written.bytes_written:,} are reported, of which the first {lost:,} are lost")
sys.exit(bool(lost))
