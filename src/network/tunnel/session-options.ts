import type { ClientSessionOptions } from 'node:http2';

/** Window of a stream. With the bytes that its reader leaves unread, a stalled stream holds at most 128 KiB. */
const STREAM_WINDOW = 96 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;
const HEADER_PAIRS_MAX = 256;

/**
 * Window of all streams of a tunnel. A stalled stream takes nothing of it: its bytes are acknowledged as soon as they
 * arrive.
 */
export const TUNNEL_WINDOW = 4 * 1024 * 1024;

/** HTTP/2 of the gateway's end of a tunnel. */
export const SESSION_OPTIONS = {
  settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: HEADER_BYTES_MAX },
  maxHeaderListPairs: HEADER_PAIRS_MAX,
  // In megabytes. The default of 10 refuses new streams when some hundred stalled ones have filled their windows;
  // their number is bounded by the proxy's.
  maxSessionMemory: 4_096,
} as const satisfies ClientSessionOptions;
