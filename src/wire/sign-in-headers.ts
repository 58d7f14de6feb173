/** The sign-in header and its other names, in lower case. */
export const SIGN_IN_HEADERS = ['sign-in-with-x', 'x-sign-in-with-x', 'x-siwx'] as const;
