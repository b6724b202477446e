"""``store_sheepdog``: the chunk size of glance_store's sheepdog driver (up to 1.0.1) is a setting.

Upstream's option ``sheepdog_store_chunk_size`` counts mebibytes. The driver starts one process for each chunk,
``collie vdi read`` or ``write``. The process takes about 20 ms before the first byte moves, and the whole chunk is in
memory. Upstream's 64 MiB stay the default, because smaller chunks make this driver slower without making it fairer.
fastio's own driver streams the data instead.
"""

from fastio.patches.glance_store import _stores
from fastio.patching.registry import Layer, Patch, Target

#: Bytes; upstream's default.
CHUNK = 64 << 20

_STORE = "glance_store._drivers.sheepdog:Store"

#: Upstream's is inherited from the class of all stores; configure_add() covers it with the option's.
_STOCK = 4 << 20

PATCH = Patch(
    __name__,
    summary="glance_store's sheepdog (up to 1.0.1): chunk sizes are settings",
    layer=Layer.REPLACE,
    counted=False,
    targets=(
        *_stores.chunk_sizes(
            _STORE,
            "sheepdog",
            _stores.Option("sheepdog_store_chunk_size", unit=1 << 20),
            READ_CHUNKSIZE=_stores.Size(
                CHUNK,
                _STOCK,
                ("get",),
                """
                def get(self, *_):
                    SheepdogImage(_, _, _, self.READ_CHUNKSIZE)
                """,
            ),
            WRITE_CHUNKSIZE=_stores.Size(
                CHUNK,
                _STOCK,
                ("add",),
                """
                def add(self, *_):
                    utils.chunkreadable(image_file, self.WRITE_CHUNKSIZE)
                """,
            ),
        ),
        Target(f"{_STORE}.configure_add", _stores.make_configure_add, contract=_stores.CONFIGURE_ADD),
    ),
    requires=(_stores.WITH_SHEEPDOG,),
)
