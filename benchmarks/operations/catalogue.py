"""All operations by name."""

import functools
from collections.abc import Mapping

from benchmarks.operations import clients, processes, services, stores
from benchmarks.operations.base import Operation

_with = functools.partial

OPERATIONS: Mapping[str, Operation] = {
    "child-output": processes.child_output,
    "child-input": processes.child_input,
    "read-at": processes.read_at,
    "oslo-execute": _with(processes.child_output, through="oslo"),
    "pipe-read": processes.pipe_read,
    "pipe-write": processes.pipe_write,
    "pipe-echo": processes.pipe_echo,
    "store-get": stores.store_get,
    "store-add": stores.store_add,
    "upload-file": _with(clients.upload, body="file"),
    "upload-memory": _with(clients.upload, body="memory"),
    "upload-sendfile": clients.sendfile,
    "swiftclient-put": clients.swiftclient_put,
    "glanceclient": clients.glanceclient,
    "openstacksdk-image": _with(clients.openstacksdk, what="image"),
    "openstacksdk-object": _with(clients.openstacksdk, what="object"),
    "wsgi-serving": services.wsgi_serving,
    "wsgi-length": _with(services.wsgi, kind="length"),
    "wsgi-chunked": _with(services.wsgi, kind="chunked"),
    "glance-download": services.download,
    "glance-upload": services.glance_upload,
}
