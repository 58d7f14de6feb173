/** The header of a sign-in, and the other names that it comes under. Lower case. */
export const SIGN_IN_HEADERS = ['sign-in-with-x', 'x-sign-in-with-x', 'x-siwx'] as const;
