import { choice, optionalText, urlFault } from '../option.ts';

/** `[alerts]`: webhooks for log lines that need attention. */
export const ALERTS = {
  url: optionalText({
    env: 'TOLLGATE_ALERTS_URL',
    secret: true,
    absent: 'nobody is told',
    takes: 'an http:// or https:// URL',
    meaning:
      'Where lines of the log that need attention are posted, as JSON. Such addresses hold keys: it is never shown.',
    fault: (value) => urlFault(value, ['http:', 'https:']),
  }),
  secret: optionalText({
    env: 'TOLLGATE_ALERTS_SECRET',
    secret: true,
    absent: 'posts are not signed',
    takes: 'text of 16 to 512 printable ASCII characters without spaces',
    meaning: 'Key of the HMAC-SHA256 of each post, in the header `x-tollgate-signature`.',
    fault: (value) => (/^[!-~]{16,512}$/.test(value) ? null : 'is too short, too long, or holds spaces'),
  }),
  level: choice({
    of: ['warn', 'error'],
    default: 'error',
    meaning:
      "Least severity that is posted. Flagged providers always are, and the operator's budgets of accounts and limits of keys that are spent to a percentage. Lines below `server.log_level` are not.",
  }),
};
