/*
 * All that a package can reach in Node, and what it gets of each. reach.test.ts compares the names with those of the
 * Node that runs, inside a process as packages have it, and tries what is said to be shut.
 */

/**
 * `removed`: is not there. `refused`: Node's permission model or a flag refuses what it does elsewhere.
 * `shut`: worker/shut.ts has taken it away, in JavaScript. `own`: it acts on the process of the package alone, which
 * may do with itself what it likes. `told`: it tells something of the machine that is no secret: its kind, its size.
 */
export type Verdict = 'removed' | 'refused' | 'shut' | 'own' | 'told';

const list = (names: string): readonly string[] => names.split(/\s+/).filter(Boolean);

const table = (rows: Readonly<Partial<Record<Verdict, string>>>): ReadonlyMap<string, Verdict> =>
  new Map(
    Object.entries(rows).flatMap(([verdict, names]) => list(names).map((name) => [name, verdict as Verdict] as const)),
  );

/** Built-in modules, without `node:`. */
export const MODULES = table({
  removed: 'sqlite ffi quic vfs dtls bench stream/iter zlib/iter',
  // Connections, names, files, programs, threads, the debugger, and files of traces.
  refused: `_http_agent _http_client _http_common _http_incoming _http_outgoing _http_server _tls_common _tls_wrap
    child_process cluster dgram dns dns/promises fs fs/promises http http2 https inspector inspector/promises net repl
    test test/reporters tls trace_events tty wasi worker_threads`,
  own: `assert assert/strict async_hooks buffer console constants crypto diagnostics_channel domain events module path
    path/posix path/win32 perf_hooks process punycode querystring readline readline/promises sea stream
    stream/consumers stream/promises stream/web string_decoder sys timers timers/promises url util util/types vm zlib`,
  // setPriority, and setFlagsFromString.
  shut: 'os v8',
});

/** Members of `process`, with those that it inherits. */
export const PROCESS = table({
  shut: `binding _linkedBinding dlopen _kill loadEnvFile kill execve _debugProcess _debugEnd initgroups setgroups setegid
    seteuid setgid setuid`,
  refused: 'report',
  told: `version versions arch platform release uptime constrainedMemory availableMemory getuid geteuid getgid getegid
    getgroups allowedNodeEnvironmentFlags features execPath debugPort argv argv0 execArgv pid ppid env config hrtime
    moduleLoadList cwd`,
  own: `_rawDebug _events _eventsCount _maxListeners domain _exiting exitCode _getActiveRequests _getActiveHandles
    getActiveResourcesInfo reallyExit cpuUsage threadCpuUsage resourceUsage memoryUsage exit ref unref finalization
    openStdin _fatalException setUncaughtExceptionCaptureCallback addUncaughtExceptionCaptureCallback
    hasUncaughtExceptionCaptureCallback emitWarning nextTick _tickCallback sourceMapsEnabled setSourceMapsEnabled
    getBuiltinModule _startProfilerIdleNotifier _stopProfilerIdleNotifier stdout stdin stderr abort umask chdir title
    _preload_modules permission constructor mainModule`,
});

/** Members of `node:os`, `node:v8` and `node:module`, which act on more than JavaScript. */
export const OS = table({
  shut: 'setPriority',
  told: `EOL arch availableParallelism constants cpus endianness freemem getPriority homedir hostname loadavg machine
    networkInterfaces platform release tmpdir totalmem type uptime userInfo version devNull default`,
});
export const V8 = table({
  shut: 'setFlagsFromString',
  refused: `writeHeapSnapshot takeCoverage setHeapSnapshotNearHeapLimit setHeapProfileNearHeapLimit`,
  own: `DefaultDeserializer DefaultSerializer Deserializer GCProfiler Serializer cachedDataVersionTag default
    deserialize getCppHeapStatistics getHeapCodeStatistics getHeapSnapshot getHeapSpaceStatistics getHeapStatistics
    isStringOneByteRepresentation promiseHooks queryObjects serialize startCpuProfile startHeapProfile startupSnapshot
    stopCoverage`,
});
export const MODULE = table({
  refused: 'register enableCompileCache findPackageJSON _findPath _load',
  own: `Module SourceMap _cache _extensions _initPaths _nodeModulePaths _pathCache _preloadModules _resolveFilename
    _resolveLookupPaths builtinModules constants createRequire default findSourceMap flushCompileCache
    getCompileCacheDir getSourceMapsSupport globalPaths isBuiltin registerHooks runMain setSourceMapsSupport
    stripTypeScriptTypes syncBuiltinESMExports`,
});

/** Globals that JavaScript itself does not have. */
export const GLOBALS = table({
  shut: 'WebSocket',
  removed: 'localStorage sessionStorage Storage StorageEvent EventSource',
  // Goes to the gateway: outgoing-fetch.ts.
  refused: 'fetch',
  told: 'Navigator navigator',
  own: `console process global Buffer clearImmediate setImmediate URL URLSearchParams DOMException QuotaExceededError
    AbortController AbortSignal Event EventTarget CustomEvent TextEncoder TextDecoder TransformStream
    TransformStreamDefaultController WritableStream WritableStreamDefaultController WritableStreamDefaultWriter
    ReadableStream ReadableStreamDefaultReader ReadableStreamBYOBReader ReadableStreamBYOBRequest
    ReadableByteStreamController ReadableStreamDefaultController ByteLengthQueuingStrategy CountQueuingStrategy
    TextEncoderStream TextDecoderStream CompressionStream DecompressionStream clearInterval clearTimeout setInterval
    setTimeout queueMicrotask structuredClone atob btoa BroadcastChannel MessageChannel MessagePort Blob File
    Performance PerformanceEntry PerformanceMark PerformanceMeasure PerformanceObserver PerformanceObserverEntryList
    PerformanceResourceTiming performance URLPattern FormData Headers Request Response MessageEvent CloseEvent
    ErrorEvent crypto Crypto CryptoKey SubtleCrypto WebAssembly`,
});

/**
 * Ways out, as code that a package runs: each must throw, or give the text `nothing`. `beyond` is a file that the
 * process may not read, `pid` is the process that started it, and `port` is one of this machine.
 */
export const WAYS: Readonly<Record<string, string>> = {
  'files by SQLite': `new (process.getBuiltinModule('node:sqlite') ?? (await import('node:sqlite'))).DatabaseSync(beyond)`,
  'files by SQLite, by require': `createRequire(import.meta.url)('node:sqlite')`,
  'foreign functions': `await import('node:ffi')`,
  storage: `localStorage.setItem('a', 'b')`,
  'a file by another path': `fs.readFileSync(new URL('file://' + beyond))`,
  'a file as bytes': `fs.readFileSync(Buffer.from(beyond))`,
  'a file by way of a folder that may be read': `fs.readFileSync(import.meta.dirname + '/../../../../../../../../..' + beyond)`,
  'a file as a blob': `await (await fs.openAsBlob(beyond)).text()`,
  'a file, opened': `fs.openSync(beyond, 'r')`,
  'the names of a folder': `fs.readdirSync(dirname(beyond))`,
  'a file that is watched': `fs.watch(beyond)`,
  'a link to a file': `fs.symlinkSync(beyond, import.meta.dirname + '/link')`,
  'a hard link to a file': `fs.linkSync(beyond, import.meta.dirname + '/link')`,
  'a module that is a file': `await import('file://' + beyond)`,
  'a module that is a file, by require': `createRequire(import.meta.url)(beyond)`,
  'variables of a file': `process.loadEnvFile(beyond)`,
  'other descriptors': `for (let fd = 0; fd < 64; fd++) { let stat; try { stat = fs.fstatSync(fd) } catch { continue } if (stat.isFile() || stat.isDirectory()) throw new Error('FOUND fd ' + fd) } return 'nothing'`,
  'its own environment, by /proc': `fs.readFileSync('/proc/self/environ')`,
  'its own descriptors, by /proc': `fs.readdirSync('/proc/self/fd')`,
  'the memory of the gateway': `fs.openSync('/proc/' + pid + '/mem', 'r')`,
  'the files of the gateway, by /proc': `fs.readFileSync('/proc/' + pid + '/root' + beyond)`,
  'a signal': `process.kill(pid, 0)`,
  'a signal, by the function below': `process._kill(pid, 0)`,
  'a signal by a handle': `const { ChildProcess } = await import('node:child_process'); const child = new ChildProcess(); child.pid = pid; if (child._handle.kill(0) !== 0) return 'nothing'; child._handle.pid = pid; child.spawn({ file: '/bin/true', args: ['true'], stdio: [] })`,
  'the debugger of the gateway': `process._debugProcess(pid)`,
  'its own debugger': `(await import('node:inspector')).open(0)`,
  'its own debugger, connected': `new (await import('node:inspector')).Session().connect()`,
  'the priority of the gateway': `os.setPriority(pid, 19)`,
  'the priority, by require': `createRequire(import.meta.url)('os').setPriority(pid, 19)`,
  'another user': `process.setuid(0)`,
  'other groups': `process.setgroups([0])`,
  'a program': `(await import('node:child_process')).execFileSync('/bin/true')`,
  'another program in its place': `process.execve('/bin/true', ['true'], {})`,
  'a program, by cluster': `(await import('node:cluster')).default.fork()`,
  'a thread': `new (await import('node:worker_threads')).Worker('', { eval: true })`,
  'a thread for hooks': `(await import('node:module')).register('data:text/javascript,')`,
  'a native addon': `process.dlopen({ exports: {} }, beyond)`,
  'a native addon, by require': `Module._extensions['.node']({ exports: {} }, beyond)`,
  'an engine of OpenSSL': `(await import('node:crypto')).setEngine(beyond); throw new Error('no engine')`,
  'an internal binding': `process.binding('fs')`,
  'a linked binding': `process._linkedBinding('fs')`,
  'an internal module': `createRequire(import.meta.url)('internal/test/binding')`,
  WASI: `new (await import('node:wasi')).WASI({ version: 'preview1', preopens: { '/': '/' } })`,
  'a report': `process.report.writeReport('report.json')`,
  'a snapshot of the heap': `v8.writeHeapSnapshot('/tmp/heap')`,
  'flags of V8': `v8.setFlagsFromString('--trace-turbo')`,
  traces: `const tracing = (await import('node:trace_events')).createTracing({ categories: ['v8'] }); tracing.enable()`,
  'compiled code': `const { status } = Module.enableCompileCache('/tmp/tollgate-cache'); if (status !== 1 && status !== 2) return 'nothing'`,
  'a connection': `await event(net.connect(port, '127.0.0.1'), 'connect')`,
  'a connection to a socket of the file system': `await event(net.connect('/var/run/docker.sock'), 'connect')`,
  'a connection in TLS': `await event((await import('node:tls')).connect(port, '127.0.0.1'), 'connect')`,
  'a connection in HTTP/2': `await event((await import('node:http2')).connect('http://127.0.0.1:' + port), 'connect')`,
  'a port': `await event(net.createServer().listen(0), 'listening')`,
  'a datagram': `const socket = (await import('node:dgram')).createSocket('udp4'); await new Promise((done, fail) => { socket.on('error', fail); socket.bind(0, done) })`,
  'a name': `await (await import('node:dns/promises')).lookup('localhost')`,
  'a name, by a resolver': `await new (await import('node:dns/promises')).Resolver().resolve4('localhost')`,
  'a WebSocket': `await event(new WebSocket('ws://127.0.0.1:' + port), 'open')`,
  'messages between processes': `if (process.send === undefined && process.channel === undefined) return 'nothing'`,
  'a file of its own': `fs.writeFileSync(import.meta.dirname + '/own', '')`,
  'a file for all': `fs.writeFileSync('/tmp/tollgate-left', '')`,
  'where it began': `if (fs.existsSync('.tollgate')) throw new Error('FOUND'); return 'nothing'`,
};
