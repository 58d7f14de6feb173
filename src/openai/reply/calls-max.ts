/** The most tool calls of one reply. Further calls are ignored, because a stream has room for millions. */
export const CALLS_MAX = 1_024;
