import { GatewayError } from '#errors';
import { foldName } from '#config';
import { parseAccountId } from '#accounts/names';
import { INVISIBLE } from '#security';

/** Letters that look like Latin ones. */
const LIKE_LATIN = /[\p{Script=Cyrillic}\p{Script=Greek}]/u;

const refused = (message: string) => new GatewayError('unprocessable', message, { param: 'label' });

/**
 * A name that somebody gives to a key, a member or an administrator, without spaces around it. Throws GatewayError
 * `invalid_request` for one with characters that nobody sees: lists, logs and terminals show it.
 */
export function readName(text: string, param: string): string {
  const name = text.trim();
  if (!INVISIBLE.test(name)) return name;
  throw new GatewayError('invalid_request', `${param} contains invisible characters: leave them out`, { param });
}

/**
 * The label of `account` as it is stored. Throws GatewayError `unprocessable` for a label that could be made to look
 * like another account's label or id.
 */
export function readLabel(text: string, account: string): string {
  const label = text.normalize('NFKC').trim().replaceAll(/\s+/g, ' ');
  if (INVISIBLE.test(label)) throw refused('The label contains invisible characters: leave them out');
  const mixed = label.split(' ').find((word) => /\p{Script=Latin}/u.test(word) && LIKE_LATIN.test(word));
  if (mixed !== undefined)
    throw refused(
      `The label has Latin letters and Cyrillic or Greek ones in one word: ${mixed}. Write each word in one script`,
    );
  const accountId = parseAccountId(label.toLowerCase()) ?? parseAccountId(label);
  if (accountId !== null && accountId !== account) throw refused(`The label ${label} is the id of another account`);
  return label;
}

/** Names of the operator, as labels that customers choose must not look. */
const OF_OPERATOR: ReadonlySet<string> = new Set(['tollgate', 'operator'].map(foldName));

/** The same as readLabel, for a label that a customer chooses. It must not look like the operator's name either. */
export function readCustomersLabel(text: string, account: string): string {
  const label = readLabel(text, account);
  if (OF_OPERATOR.has(foldName(label))) throw refused(`The label ${label} is reserved for the operator`);
  return label;
}

/** The error for a label that belongs to another account. */
export const labelTaken = (label: string): GatewayError =>
  refused(`Another account has the label or the name ${label}`);
