import { choice, optionalText, urlFault } from '../option.ts';

/** `[alerts]`: webhooks for log lines that need attention. */
export const ALERTS = {
  url: optionalText({
    env: 'TOLLGATE_ALERTS_URL',
    secret: true,
    absent: 'nobody is told',
    takes: 'an http:// or https:// URL',
    meaning:
      'Address to which log lines that need attention are posted, as JSON. It is never shown, because such addresses contain keys.',
    fault: (value) => urlFault(value, ['http:', 'https:']),
  }),
  secret: optionalText({
    env: 'TOLLGATE_ALERTS_SECRET',
    secret: true,
    absent: 'posts are not signed',
    takes: 'text of 16 to 512 printable ASCII characters without spaces',
    meaning: 'Key of the HMAC-SHA256 of each post, in the header `x-tollgate-signature`.',
    fault: (value) => (/^[!-~]{16,512}$/.test(value) ? null : 'is too short, too long, or contains spaces'),
  }),
  level: choice({
    of: ['warn', 'error'],
    default: 'error',
    meaning:
      'Lowest severity that is posted. Two kinds of lines are posted at any severity: flagged providers, and operator-set budgets and limits that are spent to a percentage. Lines below `server.log_level` are never posted.',
  }),
};
