import { isIssuerUrl } from '#security';
import { domainFault } from '../names.ts';
import { optionalText, textList, trueOrFalse, whole, DAY_MS, HOUR_MS, MINUTE_MS, openToStrangers } from '../option.ts';

/** A scope (RFC 6749). Scopes are sent in a quoted value of a header, which these characters cannot end. */
const SCOPE = /^[!#-[\]-~]{1,128}$/;
const scopeFault = (value: string) =>
  SCOPE.test(value) ? null : 'is not a scope: printable ASCII without spaces, quotes and backslashes';

const ISSUER_URL = 'https:// URL, or http:// on this machine';
const issuerUrlFault = (value: string) =>
  isIssuerUrl(value) ? null : `is not an ${ISSUER_URL}, without a user and a fragment`;

export const SIGN_IN = {
  domains: textList({
    env: 'TOLLGATE_SIGN_IN_DOMAINS',
    takes: 'list of host names, each with its port where that is not the default one',
    meaning:
      'Domains that wallets may sign in for, besides the host of `server.public_url`. Without both, wallets cannot sign in. `npm start` adds its own loopback addresses.',
    fault: domainFault,
    max: 100,
  }),
  lifetime_ms_max: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: HOUR_MS,
    meaning: 'Longest validity of a sign-in message.',
  }),
  skew_ms: whole({
    min: 0,
    max: 5 * MINUTE_MS,
    default: 30_000,
    meaning: "Largest difference between a wallet's clock and the gateway's.",
  }),
  failures_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 120,
    meaning:
      'Number of keys and sign-ins that may fail from one address in a minute. After that, the gateway refuses keys and sign-ins from there without a check, except those that it knows as valid.',
  }),
};

export const SESSIONS = {
  idle_ms: whole({
    min: MINUTE_MS,
    max: 30 * DAY_MS,
    default: 12 * HOUR_MS,
    meaning: 'A web session ends after this time without use.',
  }),
  lifetime_ms: whole({
    min: MINUTE_MS,
    max: 90 * DAY_MS,
    default: 7 * DAY_MS,
    meaning: 'A web session ends this long after the sign-in, even if it is in use.',
  }),
  admin_lifetime_ms: whole({
    min: MINUTE_MS,
    max: DAY_MS,
    default: HOUR_MS,
    meaning: "The same for an operator's session, which begins with the admin key.",
  }),
};

export const OAUTH = {
  issuer: optionalText({
    env: 'TOLLGATE_OAUTH_ISSUER',
    absent: 'none',
    takes: ISSUER_URL,
    meaning:
      'Authorization server whose access tokens are accepted instead of an API key. The value is its `issuer`, character by character.',
    fault: (value) => issuerUrlFault(value) ?? (new URL(value).search === '' ? null : 'has a query'),
  }),
  audience: optionalText({
    env: 'TOLLGATE_OAUTH_AUDIENCE',
    absent: 'none',
    takes: 'text of 1 to 512 printable ASCII characters without spaces',
    meaning:
      'One more audience that a token may have, for the whole gateway. `server.public_url` and the hosts of `sign_in.domains` are always accepted: alone for the whole gateway, with the path of an MCP or A2A endpoint for that endpoint.',
    fault: (value) => (/^[!-~]{1,512}$/.test(value) ? null : 'is too long, or contains spaces'),
  }),
  shared_audience: trueOrFalse({
    optional: { text: '`false`', fallback: false },
    meaning: 'Whether a token for one MCP or A2A endpoint of this gateway is accepted at the whole gateway.',
  }),
  scopes: textList({
    takes: 'list of scopes',
    meaning: 'Scopes that the gateway tells clients to request for their token.',
    fault: scopeFault,
    max: 100,
  }),
  required_scope: optionalText({
    absent: 'none',
    takes: 'one scope',
    meaning: 'Scope that a token must have.',
    fault: scopeFault,
  }),
  jwks_url: optionalText({
    absent: "from the issuer's metadata",
    takes: ISSUER_URL,
    meaning: 'Address of the keys (JWKS) of the issuer.',
    fault: issuerUrlFault,
  }),
};

export const AUTHORIZATION = {
  enabled: trueOrFalse<null>({
    optional: {
      text: '`false`; `true` with `npm start` on this machine, without `oauth.issuer` and without chains',
      fallback: null,
    },
    meaning:
      'Whether programs sign in at this gateway by OAuth. Their users agree to a budget and an end for each program. In production this needs `server.public_url`.',
  }),
  client_documents: openToStrangers(
    trueOrFalse({
      optional: { text: 'true', fallback: true },
      meaning:
        'Whether a client may name itself by the https address of a document about it. The gateway fetches the document.',
    }),
  ),
  registration: openToStrangers(
    trueOrFalse({
      optional: { text: 'true', fallback: true },
      meaning:
        'Whether clients without such a document may register themselves. A registration that nobody allows anything ends after a day.',
    }),
  ),
};
