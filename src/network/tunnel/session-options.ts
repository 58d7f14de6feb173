import type { ClientSessionOptions } from 'node:http2';

/** Flow-control window of a stream. With the bytes in its reader's queue, a stalled stream holds at most 128 KiB. */
const STREAM_WINDOW = 96 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;
const HEADER_PAIRS_MAX = 256;

/**
 * Flow-control window for all streams of a tunnel. A stalled stream does not use it up, because its bytes are
 * acknowledged for the session as soon as they arrive.
 */
export const TUNNEL_WINDOW = 4 * 1024 * 1024;

/** HTTP/2 options of the gateway's end of a tunnel. */
export const SESSION_OPTIONS = {
  settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: HEADER_BYTES_MAX },
  maxHeaderListPairs: HEADER_PAIRS_MAX,
  // In megabytes. With the default of 10, about a hundred stalled streams with full windows would make the session
  // refuse new ones. The number of streams is limited by the proxy's setting.
  maxSessionMemory: 4_096,
} as const satisfies ClientSessionOptions;
