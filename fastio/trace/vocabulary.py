"""What may be in a recorded text: words that are of messages and of addresses, never of anybody's data.

Each list is reviewed: a word is here because the text of an error of OpenStack, its stores, its database or the system
has it, and because nobody would choose it for a secret (so neither "admin" nor "secret" is). To add one, ask the same.
"""

from __future__ import annotations

import http


def words(text: str) -> frozenset[str]:
    """Those in ``text``, with blanks between them."""
    return frozenset(text.split())


#: In lower case. Texts may have them like this, capitalized, or in capitals.
WORDS = words(
    """
    a able abort aborted accept accepted access action active actually add added adding address addresses after again
    all allocate allowed already an and another any anymore api apis appear are as at attempt attempted attempts auth
    authenticate authenticated authentication authenticator authorization authorize authorized available away aws
    back backend backends bad be because been before begin being body broken bucket busy but by byte bytes
    call called calling can can't cancelled cannot caused certificate chain change changed check checksum child chunk
    chunked chunks cinder class clean cleaned client close closed closing cluster code command communicate compatible
    complete completed conf config configuration configured configuring conflict connect connected connecting
    connection connections connectivity constraint contain container content copy core correctly corrupt corrupted
    could create created creating credential credentials current currently
    data database deactivated deadlock decode delete deleted deleting deletion denied denying descriptor destination
    detail detected device did directory disabled disconnected disk do document does doesn't done down download driver
    due duplicate during
    eacces eagain early econnaborted econnrefused econnreset edquot ehostunreach either emfile empty enabled
    encountered encryption end endpoint endpoints enetunreach enomem enospc enough eof epipe erred error errors
    establish etimedout even exceed exceeded exceeds exception exec executing exist existing exists exit expected
    expecting expired external
    fail failed failing failure fault fetch fetched file files filesystem find finding finished flush for forbidden
    foreign format found free from full
    gateway generator get getting given glance gone got group
    had handle handshake has hash have header headers health heartbeat host hostname http https
    i id identifier identity if image images import in incapable incomplete incorrect input insecure instead
    insufficient integrity internal interrupted into invalid io is isn't issuer it its
    join
    keep key keystone kill killed known
    large larger last leader least left length limit line local location locations lock locked log long longer lookup
    lost
    made maintenance make malformed many max maximum may media memory message metadata method minimum mirror mismatch
    missing mode moved much multipart multiple must mysql
    name namespace near necessary needed network new no node non none nonzero normal not nothing null number
    object objects occurred of off offset on one only open operation or order orphan other our out output outside over
    overflow owned owner
    packet parameter parse part path peer pending performed performing permission permissions pipe please policy pool
    port possible present process processing project property protected protocol provide provided proxy proxying put
    query queue queuepool quota
    rados range rate rbd reach reached read reading reads ready reason receive received receiving reconnect record
    records redirect redirects refused region rejected remaining remote remove removed reply request requested
    requests require required requires requiring reserved reset resolution resolve resource resources response
    restarting result retries retry retrying return returned returning rolled route row running
    s safety same save schema script seconds see seek segment select self self-signed send sending sent serialize
    server service session set shared should shutdown shutting signal signature signed since size slots slow socket
    space specified ssl stale start started state status still stop stopped storage store stored stores stream string
    subject successful such supplied support supported swift system
    table tag tags taken task tasks temporarily temporary terminated than that the their them then there these they
    this thread time timed timeout timeouts timestamp tls to token too transaction transfer transient transition
    transport tried trust try trying type
    unable unauthorized unavailable under unexpected unexpectedly unknown unlock unreachable unrecognized unspecified
    unsupported until up update upload uploaded uploading uri url urlopen use used user using usual
    valid validate validation value values verification verified verify version via volume
    wait waited waiting was wasn't were when where which while who will with within without word worker write writing
    wrong wsgi wsrep
    yet you your
    zero
    """
)

#: As they are: names in the code of libraries, and of the errors of services.
NAMES = words(
    """
    AccessDenied auth_token AuthorizationFailure AuthUrlNotFound
    BackendException BadStatusLine BlockingIOError BrokenPipeError
    CalledProcessError CantStartEngineError ChunkedEncodingError ClientDisconnect ClientError ClientException
    CommunicationError CompleteMultipartUpload ConnectFailed ConnectFailure ConnectionAbortedError
    ConnectionClosedError ConnectionError ConnectionRefusedError ConnectionResetError ConnectTimeout
    ConnectTimeoutError CreateBucket CreateMultipartUpload
    DatabaseError DataError DBConnectionError DBDeadlock DeadlockDetected DeleteObject DisconnectionError DiskFull
    EndpointConnectionError err Errno errno ExpiredToken
    GeneratorExit GetObject GreenletExit
    HasSnapshot HeadBucket HeadObject HostNotInitialized HTTPBadRequest HTTPConnection HTTPConnectionPool
    HTTPForbidden HTTPGone HTTPInternalServerError HTTPNotFound HTTPSConnection HTTPSConnectionPool HTTPUnauthorized
    ImageNotFound ImageSizeLimitExceeded IncompleteRead IntegrityError InterfaceError InternalError InUseByStore
    InvalidAccessKeyId InvalidEndpoint InvalidImageData InvalidImageStatusTransition InvalidToken
    LimitExceeded ListObjects
    MaxRetryError MemoryError MissingCredentialError MySQL
    NameResolutionError NewConnectionError NoSuchBucket NoSuchKey NoSuchUpload NotAuthenticated NotFound
    NotSupportedError
    ObjectNotFound OperationalError OSError OverLimit
    PermissionError PostgreSQL ProcessExecutionError ProgrammingError ProtocolError ProxyError psycopg2 PutObject
    pymysql
    QueuePool
    ReadTimeout ReadTimeoutError RemoteDisconnected RemoteServiceUnavailable RequestTimeout
    ServiceError ServiceUnavailable SignatureDoesNotMatch SignatureVerificationError SlowDown sqlite3
    SSLCertVerificationError SSLEOFError SSLError SSLZeroReturnError StorageFull StorageQuotaFull StorageWriteDenied
    StoreAddDisabled
    TimeoutError TimeoutExpired
    UploadPart urllib3
    v1 v2 v3
    XMinioStorageFull XMinioStorageQuotaExceeded
    """
)

#: Numbers that tell what happened.
STATUSES = frozenset(str(int(status)) for status in http.HTTPStatus)

#: Segments of paths: those of the image API, of its services and of what tests and benchmarks serve.
SEGMENTS = words(
    """
    actions
    cache clear
    deactivate detail discovery
    file files
    glance
    healthcheck
    identity image image-api images import info
    locations log
    members metadefs
    namespaces
    objects
    properties
    quota
    reactivate reload resource_types
    schema schemas stage storage stores
    tags task tasks
    usage
    v1 v2 v3 versions
    """
) | {f"v2.{minor}" for minor in range(20)}
#: After one of these a UUID is that of an image or a task.
COLLECTIONS = ("images", "tasks", "cache")
