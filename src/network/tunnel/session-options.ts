import type { ClientSessionOptions } from 'node:http2';

/** What a stream may have on its way here: with what its reader leaves waiting, at most 128 KiB for one that stalls. */
const STREAM_WINDOW = 96 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;
const HEADER_PAIRS_MAX = 256;

/**
 * What all streams of a tunnel may have on their way. A stalled one takes nothing of it: its bytes are counted off
 * as soon as they are here.
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
