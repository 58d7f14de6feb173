/**
 * Only scripts and styles of this host are allowed. Scripts can't turn text into markup, because no policy of Trusted
 * Types exists. This protects against texts of providers.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
  "font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'";

const HSTS_S = 31_536_000;

/** The headers of every web page and its files. If `publicUrl` is https, browsers are told to use only TLS. */
export function pageHeaders(publicUrl: string | null): Readonly<Record<string, string>> {
  return {
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    // Wallet extensions open popup windows.
    'cross-origin-opener-policy': 'same-origin-allow-popups',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
    ...(publicUrl?.startsWith('https:') ? { 'strict-transport-security': `max-age=${HSTS_S}` } : {}),
  };
}
