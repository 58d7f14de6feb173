/** Names of the cap of a completion. */
export const CAP_NAMES = ['max_tokens', 'max_completion_tokens', 'none'] as const;

export type CapName = (typeof CAP_NAMES)[number];
