/** The request fields that can cap completion tokens. `none` means that the provider takes no cap. */
export const CAP_NAMES = ['max_tokens', 'max_completion_tokens', 'none'] as const;

export type CapName = (typeof CAP_NAMES)[number];
