"""Where the figures come from that sentences of the documentation quote, by the heading of their section.

A figure is named by its result, the title of a table of it, the row and the column; ``*`` stands for anything. With a
case's name in place of the title it is the median of the runs, in all its digits. ``min`` and ``max`` are of all that
fit, ``A : B`` is a ratio, and ``A = B`` is said of both. A number that is quoted twice has two sources.
"""

_ADD = "stores | *: add of 256 MiB"
_GET_SWIFT = "stores | swift: get of 256 MiB"
_GLANCE32, _GLANCE33 = "glance | glance-32: download of 1 GiB", "glance | glance-33: download of 1 GiB"
_ASKED = "glance | Goals | glance-3"
_HTTP = "glance_client | Goals | glanceclient over HTTP, "
_HTTPS = "glance_client_https | Goals | glanceclient over HTTPS, "
_MANY33, _MANY32 = "concurrency_glance33 | glance-33: ", "concurrency_glance32 | glance-32: "
_SHIPPED, _SHIPPED_GOALS = "glance_shipped | *: download of 1 GiB | ", "glance_shipped | Goals | glance-33-shipped"
_EARLIER = "glance_shipped_earlier | Goals | glance-33-shipped"
_MANY_SHIPPED = "concurrency_shipped | glance-33-shipped: "
_SLOW = "slow_clients | glance-33, as it is shipped: "
_UPLOADS = "uploads | Goals | requests.put() of a file, "
_LINK, _FAST_LINK = (f"network | What limits * | glance-32-{rate}" for rate in ("1Gbit", "10Gbit"))
_DISK = "disk_swift | Goals | "
_TRUE = 'processutils.execute("true"), median'
_RBD = "rbd: get of 256 MiB | native-fastio | x *"
_COUNTS = "counting | CPU for the count of a call"
_FEWER = "workload_matrix | What the study found | cpu-"

QUOTED: dict[str, dict[str, list[str]]] = {
    "What it brings": {
        "2.41": [f"{_GLANCE32} | fastio | x *"],
        "0.394": [f"{_ASKED}2 download, fastio, server CPU s/GiB | reached"],
        "0.082": [f"{_GLANCE32} | fastio, 20 + requests | p99_ms : 1000"],
        "8.01": [f"{_GLANCE32} | stock, 20 + requests | p99_ms : 1000"],
        "1.86": [f"{_SHIPPED_GOALS} upload, MB/s | reached"],
        "1.64": [f"{_SHIPPED_GOALS} download, MB/s | reached"],
        "15.3": [f"{_SLOW}200 clients* | fastio | p99_ms"],
    },
    "What gets slower, and what changes": {
        "0.986": [f"{_LINK}, fastio-sendfile-1w | x *"],
        "0.905": [f"{_MANY32}100 downloads* | fastio | x *"],
        "1.09": [f"min {_MANY32}[!1]* | fastio | x *"],
        "1.56": [f"max {_MANY32}[!1]* | fastio | x *"],
        "0.967": [f"min {_MANY_SHIPPED}*0 downloads* | fastio | x *"],
        "1.06": [f"{_MANY_SHIPPED}2000 downloads* | fastio | x *"],
        "0.159": [f"{_GLANCE33} | fastio, 20 + requests | p99_ms : 1000"],
        "0.134": [f"{_GLANCE33} | stock, 20 + requests | p99_ms : 1000"],
        "0.814": ["stores | filesystem: get of 256 MiB | eventlet-fastio | x *"],
        "0.677": [f"stores | {_RBD}"],
        "1.05": [f"stores_rbd | {_RBD}"],
        "1.83": ["stores_1gib | rbd: get of 1 GiB | native-fastio | x *"],
    },
    "The sheepdog case": {
        "3.92": ["sheepdog | execute* | eventlet-fastio | x *"],
        "1.99": ["sheepdog | collie vdi read* as slow * | eventlet-fastio | x *"],
        "23.8": ["sheepdog | collie vdi write* as slow * | eventlet-fastio | x *"],
    },
    "Compared with peers": {
        "0.787": ["peers | *output | anyio-trio | x *"],
        "0.62": ["peers | *output | gevent | x *"],
        "0.303": ["peers | *output | asyncio | x *"],
        "1.67": ["peers | *input to a child | uvloop | x *"],
    },
    "Offered load": {
        "1.27": ["offered_load | glance-33-shipped* | fastio | x *"],
        "93.8": ["offered_load | glance-33-shipped* | stock | operations_per_second"],
        "1.05": ["offered_load_again | glance-33-shipped* | fastio | x *"],
        "1.16": ["offered_load_glance32 | glance-32* | fastio | x *"],
        "0.967": ["offered_load_again | glance-32* | fastio | x *"],
    },
    "Imports into several stores": {
        "0.228": ["min imports | Goals | glance-33-*, s | reached"],
        "0.245": ["max imports | Goals | glance-33-*, s | reached"],
        "0.26": ["min imports | Goals | glance-33-*, server CPU s | reached"],
        "0.303": ["max imports | Goals | glance-33-*, server CPU s | reached"],
        "0.335": ["min imports | Goals | glance-32-*, s | reached"],
        "0.353": ["max imports | Goals | glance-32-*, s | reached"],
        "0.317": ["min imports | Goals | glance-32-*, server CPU s | reached"],
        "0.341": ["max imports | Goals | glance-32-*, server CPU s | reached"],
    },
    "Input": {
        "16.4": ["input | communicate(input) of 200 MiB* | eventlet-stock | MB/s"],
        "2,960": ["input | communicate(input) of 200 MiB* | eventlet-fastio | MB/s"],
    },
    "Short commands": {
        "0.642": [f"commands | {_TRUE} | eventlet-fastio | ms"],
        "3.54": [f"commands | {_TRUE} | eventlet-stock | ms"],
        "0.667": [f"commands | {_TRUE}, 1 GiB* | eventlet-fastio | ms"],
        "43.8": [f"commands | {_TRUE}, 1 GiB* | eventlet-stock | ms"],
    },
    "Fairness": {
        "0.612": ["fairness | * 1 x 64 MiB | eventlet-fastio | ms"],
        "4.8": ["fairness | * 1 x 64 MiB | eventlet-stock | ms"],
        "1.41": ["fairness | * 8 x 64 MiB | eventlet-fastio | ms"],
        "26.4": ["fairness | * 8 x 64 MiB | eventlet-stock | ms"],
        "12.4": ["fairness | * 64 x 64 MiB | eventlet-fastio | ms"],
        "4.73": ["fairness | * 64 x 64 MiB | eventlet-stock | ms"],
        "94.3": ["fairness | * 64 x 64 MiB | eventlet-fastio | worst_ms"],
        "3,146": ["fairness | * 64 x 64 MiB | eventlet-stock | worst_ms"],
    },
    "GreenPipe": {
        "4.87": ["green_pipe | GreenPipe: read() of 200 MiB | eventlet-fastio | x *"],
        "8.74": ["green_pipe | GreenPipe: read(1 KiB) | eventlet-fastio | x *"],
        "7.82": ["green_pipe | GreenPipe: writes of 1 KiB | eventlet-fastio | x *"],
    },
    "The sheepdog drivers": {
        "2.66": ["sheepdog_driver | get() * as slow * | native-fastio | x *"],
        "2.57": ["sheepdog_driver | add() * as slow * | native-fastio | x *"],
    },
    "What counting costs": {
        "66.8": [f"{_COUNTS} | hooked | ns"],
        "28.5": [f"{_COUNTS} | took | ns"],
        "26.5": [f"{_COUNTS} | in_place | ns"],
        "58.0": [f"{_COUNTS} | fell_back | ns"],
    },
    "The WSGI server of eventlet": {
        "3.08": ["wsgi | * in chunked encoding, chunks of 4MiB | eventlet-fastio | x *"],
        "0.925": ["min wsgi | * with Content-Length* | eventlet-fastio | x *"],
        "1.07": ["max wsgi | * with Content-Length* | eventlet-fastio | x *"],
        "0.871": ["wsgi | sendall() of 1 GiB, 4MiB* | eventlet-fastio | x *"],
        "3.03": ["wsgi | sendall() of 1 GiB, 4MiB* | eventlet-fastio | p99_ms"],
    },
    "The defaults": {
        "1,998": ["sweep | chunk * | 1MiB/1MiB/1MiB | MB/s"],
        "2,110": ["max sweep | chunk * | * | MB/s"],
    },
    "The stores of glance_store": {
        "1.2": [f"min {_ADD} | *-fastio | x *"],
        "1.8": [f"max {_ADD} | *-fastio | x *"],
        "6.9": ["stores | s3: add of 256 MiB | native-stock | server CPU s/GiB"],
        "4.4": ["stores | swift: add of 256 MiB | native-fastio | server CPU s/GiB"],
        "0.78": ["stores | filesystem: add of 256 MiB | native-fastio | MiB/s : "
                 "stores | filesystem: add of 256 MiB | limit-sha512 | MiB/s"],
        "1.1": ["stores | cinder: add of 256 MiB | eventlet-stock | p99_ms : 1000"],
        "1.7": [f"max {_ADD} | eventlet-stock | p99_ms : 1000",
                "stores | filesystem: get of 256 MiB | eventlet-fastio | worst_ms"],
        "4.5": [f"min {_ADD} | eventlet-fastio | p99_ms"],
        "0.35": [f"{_GET_SWIFT} | native-fastio | CPU s/GiB : {_GET_SWIFT} | native-stock | CPU s/GiB"],
        "0.45": [f"{_GET_SWIFT} | eventlet-fastio | CPU s/GiB : {_GET_SWIFT} | eventlet-stock | CPU s/GiB"],
        "0.81": ["stores | filesystem: get of 256 MiB | eventlet-fastio | x *"],
        "0.98": ["stores_1gib | filesystem: get of 1 GiB | eventlet-fastio | x *"],
    },
    "glance-api": {
        "7.1": [f"{_GLANCE32} | fastio, 1 + requests | p50_ms"],
        "10.8": [f"{_GLANCE32} | fastio, 5 + requests | p50_ms"],
        "18.5": [f"{_GLANCE32} | fastio, 20 + requests | p50_ms"],
        "1,629": [f"{_GLANCE32} | stock, 20 + requests | p50_ms"],
        "13.8": [f"{_GLANCE32} | fastio, 1 + requests | p99_ms"],
        "26.6": [f"{_GLANCE32} | fastio, 5 + requests | p99_ms"],
        "2.41": [f"{_GLANCE32} | fastio | x *"],
        "0.394": [f"{_ASKED}2 download, fastio, server CPU s/GiB | reached"],
        "0.586": [f"{_ASKED}2 download, fastio, server CPU s/GiB, nginx* | reached"],
        "1.86": [f"{_GLANCE32} | fastio, 1 + requests | x * = {_GLANCE32} | fastio, 5 + requests | x *"],
        "1.9": [f"{_ASKED}2 download, MB/s | goal"],
        "2.33": [f"{_GLANCE32} | fastio, 20 + requests | x *"],
        "1.51": [f"{_GLANCE32} | fastio-sendfile | x *"],
        "1.04": [f"{_ASKED}2 download, fastio-sendfile, server CPU s/GiB, nginx* | reached"],
        "1.82": [f"{_GLANCE32} | fastio-copying | x *"],
        "2.38": [f"{_GLANCE33} | fastio | x *"],
        "0.43": [f"{_ASKED}3 download, fastio, server CPU s/GiB | reached"],
        "1.85": [f"{_ASKED}2 upload, MB/s | reached"],
        "2.56": [f"{_ASKED}3 upload, MB/s | reached"],
    },
    "glance-api as it is shipped": {
        "1.64": [f"{_SHIPPED_GOALS} download, MB/s | reached"],
        "1.4": [f"{_SHIPPED_GOALS} download, MB/s | goal"],
        "0.577": [f"{_SHIPPED_GOALS} download, fastio, server CPU s/GiB | reached"],
        "0.7": [f"{_SHIPPED_GOALS} download, fastio, server CPU s/GiB | goal"],
        "1.86": [f"{_SHIPPED_GOALS} upload, MB/s | reached"],
        "1.8": [f"{_SHIPPED_GOALS} upload, MB/s | goal"],
        "1.35": [f"{_SHIPPED}fastio, 5 + requests | x * = {_SHIPPED}fastio, 20 + requests | x *"],
        "1.32": [f"{_SHIPPED}reference-nginx, 5 + requests | x *"],
        "1.24": [f"{_SHIPPED}reference-nginx, 20 + requests | x *"],
        "1,082": [f"{_SHIPPED}fastio, 5 + requests | p99_ms"],
        "1,423": [f"{_SHIPPED}stock, 5 + requests | p99_ms"],
        "2,372": ["glance_shipped | *: upload of 1 GiB | fastio, 5 + requests | p99_ms"],
        "2,653": ["glance_shipped | *: upload of 1 GiB | stock, 5 + requests | p99_ms"],
        "5,300": [f"{_SHIPPED}fastio, 20 + requests | p99_ms"],
        "7,054": [f"{_SHIPPED}stock, 20 + requests | p99_ms"],
        "18.4": ["glance_shipped | *: upload of 1 GiB | fastio, 1 + requests | p99_ms"],
        "11.9": ["glance_shipped | *: upload of 1 GiB | stock, 1 + requests | p99_ms"],
        "45.9": [f"{_SHIPPED}fastio-slow-clients, 5 + requests | p99_ms"],
        "1.47": [f"{_SHIPPED_GOALS} download, fastio-slow-clients, MB/s | reached"],
        "0.646": [f"{_SHIPPED_GOALS} download, fastio-slow-clients, server CPU s/GiB | reached"],
        "1.56": [f"{_EARLIER} download, MB/s | reached"],
        "2.08": [f"{_EARLIER} upload, MB/s | reached"],
        "11.8": ["glance_shipped_earlier | *: upload of 1 GiB | fastio, 1 + requests | p99_ms"],
        "12.2": ["glance_shipped_earlier | *: upload of 1 GiB | stock, 1 + requests | p99_ms"],
        "5,764": ["glance_shipped_earlier | *: download of 1 GiB | fastio, 20 + requests | p99_ms"],
        "5,317": ["glance_shipped_earlier | *: download of 1 GiB | stock, 20 + requests | p99_ms"],
    },
    "A client that is not local": {
        "3.28": [f"{_LINK}, fastio-sendfile-1w | server CPU s/GiB"],
        "3.18": [f"{_LINK}, fastio-copying-1w | server CPU s/GiB"],
        "3.48": [f"{_LINK}, fastio-mapping-1w | server CPU s/GiB"],
        "2.75": [f"{_LINK}, stock-1w | server CPU s/GiB"],
        "3.31": [f"{_LINK}, fastio-sendfile-8w | server CPU s/GiB"],
        "2.28": [f"{_LINK}, stock-8w | server CPU s/GiB"],
        "4.69": [f"{_LINK}, tls-fastio-1w | server CPU s/GiB"],
        "4.2": [f"{_LINK}, tls-stock-1w | server CPU s/GiB"],
        "0.959": [f"{_FAST_LINK}, fastio-sendfile-1w | x *"],
        "1.05": [f"{_FAST_LINK}, fastio-mapping-1w | x *"],
        "0.917": [f"{_FAST_LINK}, fastio-copying-1w | x *"],
        "0.927": [f"{_FAST_LINK}, fastio-sendfile-8w | x *"],
        "1.17": [f"{_GLANCE32} | stock | server CPU s/GiB"],
    },
    "Slow clients": {
        "9.74": [f"{_SLOW}4 clients* | fastio | p99_ms"],
        "3,578": [f"{_SLOW}4 clients* | stock | p99_ms"],
        "1.19": [f"{_SLOW}4 clients* | reference-nginx | p99_ms"],
        "15.3": [f"{_SLOW}200 clients* | fastio | p99_ms"],
        "1.72": [f"{_SLOW}200 clients* | reference-nginx | p99_ms"],
        "30,491": [f"{_SLOW}200 clients* | stock | p99_ms"],
        "4.51": [f"{_SLOW}200 clients* | stock | MB/s"],
        "1.62": [f"{_SLOW}4 clients* | stock | server CPU*"],
        "1.59": [f"{_SLOW}4 clients* | fastio | server CPU*"],
        "0.168": [f"{_SLOW}4 clients* | reference-nginx | server CPU*"],
        "7.88": ["slow_clients_8mib | *200 clients* | fastio | p50_ms"],
    },
    "A download's cost for the client": {
        "3.9": ["glance_client | Download* | limit-sha512 | s"],
        "0.81": [f"{_HTTP}verified, seconds | reached"],
        "1.13": ["glance_client | client-http | api-stock-unverified | transfer_cpu_seconds : "
                 "glance_client | client-http | curl | cpu_seconds"],
        "1.37": [f"{_HTTP}api-fastio-unverified, CPU s, curl* | reached"],
        "1.11": ["glance_client_https | client-https | api-stock-unverified | transfer_cpu_seconds : "
                 "glance_client_https | client-https | curl | cpu_seconds"],
        "1.03": [f"{_HTTPS}api-fastio-unverified, CPU s, curl* | reached"],
        "1.87": [f"{_HTTP}api-eventlet-fastio-unverified, CPU s, curl* | reached"],
        "1.30": ["glance_client_https | client-https | api-eventlet-stock-unverified | transfer_cpu_seconds : "
                 "glance_client_https | client-https | curl | cpu_seconds"],
        "1.10": [f"{_HTTPS}api-eventlet-fastio-unverified, CPU s, curl* | reached"],
        "2.6": [f"{_HTTP}api-fastio, CPU s without the hashing* | reached"],
        "1.4": [f"{_HTTPS}api-fastio, CPU s without the hashing* | reached"],
    },
    "An upload's cost for the client": {
        "0.486": [f"{_UPLOADS}native, seconds | reached"],
        "0.448": [f"{_UPLOADS}native, CPU s | reached"],
        "0.555": [f"{_UPLOADS}eventlet, seconds | reached"],
        "0.53": [f"{_UPLOADS}eventlet, CPU s | reached"],
        "0.333": [f"{_UPLOADS}native, seconds | goal"],
        "0.4": [f"{_UPLOADS}native, CPU s | goal"],
        "1.81": ["uploads | *of a file* | reference-sendfile | x *"],
        "2.06": ["uploads | *of a file* | native-fastio | x *"],
        "2.21": ["uploads | *BytesIO* | native-fastio | x *"],
    },
    "Glance 33 as it is shipped": {
        "1.09": [f"{_MANY_SHIPPED}5 downloads* | fastio | x *"],
        "1.14": [f"{_MANY_SHIPPED}20 downloads* | fastio | x *"],
        "0.967": [f"min {_MANY_SHIPPED}*0 downloads* | fastio | x *"],
        "1.06": [f"{_MANY_SHIPPED}2000 downloads* | fastio | x *"],
        "18.9": [f"{_MANY_SHIPPED}2000 downloads* | fastio | whole_p99_ms : 1000"],
        "19.1": [f"{_MANY_SHIPPED}2000 downloads* | stock | whole_p99_ms : 1000"],
        "1.4": ["concurrency_shipped | Goals | *, 100 at a time: req/s | goal"],
    },
    "Glance 33 with threads": {
        "1.39": [f"{_MANY33}20 downloads* | fastio | x *"],
        "1.70": [f"{_MANY33}400 downloads* | fastio | x *"],
        "1.32": [f"{_MANY33}800 downloads* | fastio | x *"],
        "1.23": [f"{_MANY33}2000 downloads* | fastio | x *"],
    },
    "Glance 32": {
        "1.41": [f"{_MANY32}5 downloads* | fastio | x *"],
        "1.56": [f"{_MANY32}20 downloads* | fastio | x *"],
        "0.905": [f"{_MANY32}100 downloads* | fastio | x *"],
        "1.2": [f"{_MANY32}400 downloads* | fastio | x *"],
        "1.09": [f"{_MANY32}800 downloads* | fastio | x *"],
        "1.13": [f"{_MANY32}2000 downloads* | fastio | x *"],
        "66.3": ["concurrency_glance32 | Goals | *saturated | fastio"],
        "58.7": ["concurrency_glance32 | Goals | *saturated | stock"],
        "1.3": ["concurrency_glance32 | Goals | *, 100 at a time: req/s | goal"],
        "0.997": [f"{_MANY32}100 downloads* | fastio, copying | x *"],
    },
    "Disk against Swift": {
        "11.9": ["disk_swift | one client, the same log* | swift-stock | whole_p50_ms"],
        "2.1": ["disk_swift | one client, the same log* | disk-stock | whole_p50_ms"],
        "8.2": ["disk_swift | Where Swift loses* | one client, the same log again and again, response | lost, ms"],
        "9.0": ["disk_swift | one client, the same log* | swift-direct | whole_p50_ms"],
        "1.12": [f"{_DISK}one-same: transfer from Swift, ms, swift-fastio | reached"],
        "0.79": [f"min {_DISK}[!s]*: transfer from Swift, ms, swift-fastio | reached"],
        "0.95": [f"{_DISK}five-repeated: transfer from Swift, ms, swift-fastio | reached"],
        "0.80": [f"min {_DISK}[!s]*: whole request from Swift, ms, swift-fastio | reached"],
        "1.06": [f"max {_DISK}[!s]*: whole request from Swift, ms, swift-fastio | reached"],
        "1.6": [f"min {_DISK}[!s]*: transfer from Swift, ms, swift-1MiB-fastio | reached"],
        "5.5": [f"max {_DISK}[!s]*: transfer from Swift, ms, swift-1MiB-fastio | reached"],
        "0.85": [f"min {_DISK}[!s]*: whole request from Swift, ms, swift-1MiB-fastio | reached"],
        "1.08": [f"max {_DISK}[!s]*: whole request from Swift, ms, swift-1MiB-fastio | reached"],
        "0.88": [f"{_DISK}size-256MiB: transfer from Swift, ms, swift-fastio | reached"],
        "1.05": [f"{_DISK}size-256MiB: transfer from Swift, ms, swift-1MiB-fastio | reached"],
        "1.36": [f"{_DISK}size-256MiB: transfer from Swift, ms, swift-wide-fastio | reached"],
    },
    "How much, and at what cost": {
        "1.8": ["trace | What tracing may cost | us of an event: points | is"],
        "2.3": ["trace | What tracing may cost | us of an event: spans | is"],
        "3.3": ["trace | What tracing may cost | us of an event: requests | is"],
        "0.99": ["min trace | What tracing may cost | *downloads* | is"],
        "1.02": ["max trace | What tracing may cost | *downloads* | is"],
    },
    "The workload matrix": {
        "0.9": [f"{_FEWER}reads: MiB/s, one-core* | goal"],
        "0.95": [f"{_FEWER}path: MiB/s, one-core* | goal"],
        "0.715": [f"{_FEWER}reads: MiB/s, one-core* | reached"],
        "0.52": [f"{_FEWER}reads: MiB/s, quota* | reached"],
        "0.694": [f"{_FEWER}writes: MiB/s, one-core* | reached"],
        "0.493": [f"{_FEWER}writes: MiB/s, quota* | reached"],
    },
}  # fmt: skip

#: Numbers in sentences that no result has: what was asked for, releases and settings.
GIVEN: dict[str, set[str]] = {
    "Offered load": {"1.25", "1.3"},
    "Imports into several stores": {"0.5", "0.4"},
    "What gets slower, and what changes": {"2,000"},
    "The sheepdog case": {"2.7", "1,024"},
    "Glance 33 as it is shipped": {"2,000"},
    "Glance 33 with threads": {"2,000"},
    "Glance 32": {"2,000"},
    "How much, and at what cost": {"0.1"},
    "What it costs": {"2,000"},
    "The workload matrix": {"0.75"},
}
