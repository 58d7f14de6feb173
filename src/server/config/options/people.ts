import { isIssuerUrl } from '#security';
import { formatUsd, MoneyError, parseUsd, type MicroUsd } from '#billing/amounts';
import { isTable } from '../reading.ts';
import { show, WrongValue } from '../problem.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, option, optionalText, text, textList, whole } from '../option.ts';

/** The rights of the people of one group of the company's provider. */
interface GroupRule {
  readonly group: string;
  /** Rights of administrators. Empty: none. */
  readonly admin: readonly ('read' | 'credit' | 'configure')[];
  /** Name of the account that is the organisation: `tollgate:local:<name>`. null: the rule makes nobody a member. */
  readonly organisation: string | null;
  readonly role: 'viewer' | 'member' | 'admin';
  /** The most that one person may spend in a month. null: as much as the organisation has. */
  readonly budget: MicroUsd | null;
}

const RIGHTS = ['read', 'credit', 'configure'] as const;
const ROLES = ['viewer', 'member', 'admin'] as const;
const KEYS = ['group', 'admin', 'organisation', 'role', 'budget'];
const GROUPS_MAX = 200;
const BUDGET_MAX = 1_000_000_000_000n;
const TAKES = '[[people.groups]] blocks';

function readGroups(value: unknown): readonly GroupRule[] {
  if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, TAKES);
  if (value.length > GROUPS_MAX) throw new WrongValue(`has ${value.length} entries`, `at most ${GROUPS_MAX}`);
  return value.map(readRule);
}

function readRule(value: unknown, at: number): GroupRule {
  const fail = (wrong: string, right: string): never => {
    throw new WrongValue(`has a wrong entry ${at + 1}: ${wrong}`, right);
  };
  if (!isTable(value)) return fail(`it is ${show(value)}`, TAKES);
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) fail(`${show(unknown)} is not an option`, `one of ${KEYS.join(', ')}`);
  const { group, admin = [], organisation = null, role = 'member', budget = null } = value;
  if (typeof group !== 'string' || group === '' || group.length > 256)
    return fail('it names no group', 'group = "…", as the provider writes it, in 1 to 256 characters');
  const rights = RIGHTS.filter((right) => Array.isArray(admin) && admin.includes(right));
  if (!Array.isArray(admin) || rights.length !== new Set(admin).size)
    return fail(`admin is ${show(admin)}`, `a list of ${RIGHTS.join(', ')}`);
  if (organisation !== null && (typeof organisation !== 'string' || !/^[a-z0-9-]{1,64}$/.test(organisation)))
    return fail(`organisation is ${show(organisation)}`, '1 to 64 small letters, digits and hyphens');
  const known = ROLES.find((one) => one === role);
  if (known === undefined) return fail(`role is ${show(role)}`, `one of ${ROLES.join(', ')}`);
  if (organisation === null && (budget !== null || value['role'] !== undefined))
    return fail('role and budget are those in an organisation', 'organisation = "…" beside them');
  if (organisation === null && rights.length === 0) return fail('it gives nothing', 'admin, or organisation');
  return { group, admin: rights, organisation, role: known, budget: budget === null ? null : readBudget(budget, fail) };
}

function readBudget(value: unknown, fail: (wrong: string, right: string) => never): MicroUsd {
  const right = `USD in a month, up to ${formatUsd(BUDGET_MAX)}`;
  try {
    const amount = parseUsd(typeof value === 'bigint' ? String(value) : value, 'budget');
    return amount < 0n || amount > BUDGET_MAX ? fail(`budget is ${show(value)}`, right) : amount;
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    return fail(error.message, right);
  }
}

const ISSUER_URL = 'https:// URL, or http:// on this machine';
const noSpaces = (value: string) => (/^[!-~]{1,512}$/.test(value) ? null : 'is too long, empty, or contains spaces');

export const PEOPLE = {
  issuer: optionalText({
    env: 'TOLLGATE_PEOPLE_ISSUER',
    absent: 'none',
    takes: ISSUER_URL,
    meaning:
      "The company's OpenID Connect provider, at which its people sign in. The value is its `issuer`, character by character. Needs `people.client_id`, `people.client_secret` and `server.public_url`.",
    fault: (value) =>
      isIssuerUrl(value) && new URL(value).search === ''
        ? null
        : `is not an ${ISSUER_URL}, without a user, a query and a fragment`,
  }),
  client_id: optionalText({
    env: 'TOLLGATE_PEOPLE_CLIENT_ID',
    absent: 'none',
    takes: 'text of 1 to 512 printable ASCII characters without spaces',
    meaning: 'Name of this gateway at the provider.',
    fault: noSpaces,
  }),
  client_secret: optionalText({
    env: 'TOLLGATE_PEOPLE_CLIENT_SECRET',
    absent: 'none',
    takes: 'text of 1 to 512 printable ASCII characters without spaces',
    meaning: 'Secret of this gateway at the provider.',
    secret: true,
    fault: noSpaces,
  }),
  name: text({
    takes: 'text of 1 to 40 characters',
    default: 'your company',
    meaning: 'Name on the button: *Sign in with …*',
    fault: (value) => (/^[^\p{C}]{1,40}$/u.test(value) ? null : 'is empty or too long'),
  }),
  scopes: textList({
    takes: 'list of scopes',
    meaning:
      'Scopes that the gateway requests besides `openid`, `profile`, `email` and `offline_access`, for example `groups`.',
    fault: noSpaces,
    max: 20,
  }),
  groups_claim: text({
    takes: 'name of a claim',
    default: 'groups',
    meaning: 'Claim of the identity token, or of the userinfo, with the list of groups.',
    fault: noSpaces,
  }),
  refresh_ms: whole({
    min: MINUTE_MS,
    max: DAY_MS,
    default: 10 * MINUTE_MS,
    meaning: 'How often the provider is asked about each person. What it says then decides about groups and access.',
  }),
  absent_ms: whole({
    min: 0,
    max: 30 * DAY_MS,
    default: 8 * HOUR_MS,
    meaning: 'How long a person stays signed in whose provider cannot be asked, since it last answered.',
  }),
  keys_absent_ms: whole({
    min: 0,
    max: 365 * DAY_MS,
    default: 30 * DAY_MS,
    meaning:
      'How long the memberships, keys and programs of such a person stay. Also those of a person for whom the provider gives no refresh token, since the last sign-in.',
  }),
  groups: option<readonly GroupRule[]>({
    takes: TAKES,
    meaning:
      'What the people of a group may do: `group`, and `admin` (rights of administrators: `read`, `credit`, `configure`) or `organisation` with `role` (`viewer`, `member`, `admin`) and `budget` (USD a month). A group without a block gives no access.',
    optional: { text: '[]', fallback: [] },
    read: readGroups,
    fromText: () => null,
  }),
};
