import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Budget } from '#billing';
import type { MicroUsd } from '#billing/amounts';
import { GatewayError } from '#errors';
import { networkOf, visible } from '#security';
import type { Access } from './access.ts';
import type { Tags } from './tags.ts';

/**
 * The caller: one account, and the credential of the request. A caller with neither key nor wallet has an access token.
 */
export interface Caller {
  /** Ledger account of the consumer, for example `tollgate:local:dev` or `solana:<address>`. */
  readonly account: string;
  /** null for a caller that signed in with a wallet or an access token. */
  readonly key: CallerKey | null;
  /** null for a caller with an API key or an access token. */
  readonly wallet: CallerWallet | null;
  /** The running call for which an agent makes this call, paid from the lock of that call; absent for other callers. */
  readonly run?: CallerRun;
  /**
   * Set for a caller without a credential. It may only read public data and pay for a request. `from`: the network that
   * its rate is counted under, as it has no account.
   */
  readonly anonymous?: { readonly from: string };
  /**
   * Set for a caller with a payment and no credential. For this one request, `account` is that of the paying wallet.
   * `from`: see `anonymous`.
   */
  readonly paying?: { readonly from: string };
  /**
   * Set for a caller with the cookie of a web session. A cookie can be stolen, so operations that affect more than one
   * call need a proof in the request itself, see requireFreshSignature.
   */
  readonly session?: CallerSession;
  /**
   * The budgets that its calls are counted in; absent for none. A key without a limit has a budget that no call can
   * exceed, so that its spending is counted.
   */
  readonly budgets?: readonly CallerBudget[];
  /** The budgets of tags that its account has; absent for none. A call counts in those of its tags. */
  readonly tagBudgets?: readonly TagBudget[];
  /** A member who acts for the account; absent for callers of the account itself. */
  readonly member?: CallerMember;
  /**
   * The rate limits that were set for its key and for its account, which all callers of the account share; absent where
   * nobody has set any.
   */
  readonly rates?: { readonly key: MinuteRates | null; readonly account: AccountRates | null };
  /** The tags of its key and in the headers of its request; absent for none. */
  readonly tags?: Tags;
  /** The end user that the headers of its request name; absent for none. */
  readonly endUser?: string;
  /**
   * The agents, or routes of agents, that its access token is for, as they stand in addresses below `/a2a/`. The routes
   * of agents compare the agent that they have read from the address. Absent: it has no token, or one for more.
   */
  readonly agents?: readonly string[];
  /** The content of its request, for a key with `askAbove`; absent for others, and where no call is made. */
  readonly content?: RequestContent;
}

/** The content of a request, as the person sees it who accepts the request. */
interface RequestContent {
  /** SHA-256 in hex. A repeat of the request has the same. */
  readonly digest: string;
  /** The beginning of the request, at most PREVIEW_CHARS of it, and how much more there is. */
  readonly preview: string;
  /** How long the request waits for a decision, in milliseconds. */
  readonly waitMs: number;
}

const PREVIEW_CHARS = 2_000;

/** Whether a person may have to accept what the caller asks for. */
export const mayAsk = ({ key, run }: Pick<Caller, 'key' | 'run'>): boolean =>
  key?.askAbove !== undefined && run === undefined;

/** The caller with the content of its request, for one that mayAsk. `of`: what the content is sent to. */
export function withContent(caller: Caller, contentName: string, whole: string | Uint8Array, waitMs = 0): Caller {
  const digest = createHash('sha256').update(`${contentName}\n`).update(whole).digest('hex');
  const text = typeof whole === 'string' ? whole : Buffer.from(whole.subarray(0, PREVIEW_CHARS * 4)).toString();
  const beginning = text.slice(0, PREVIEW_CHARS);
  const rest = Buffer.byteLength(whole) - Buffer.byteLength(beginning);
  const preview =
    visible(beginning) + (text.length > PREVIEW_CHARS ? `\n… and ${rest} more bytes, which are not shown` : '');
  return { ...caller, content: { digest, preview, waitMs } };
}

interface CallerSession {
  readonly id: string;
  /** `development`: signed in without a proof, to the account with play money. Only possible on this machine. */
  readonly method: 'wallet' | 'api_key' | 'development' | 'person';
  /** Whether a person of the company signed in just now, which counts as a proof; absent for other sessions. */
  readonly fresh?: boolean;
}

export const isDevelopment = ({ key, session, member }: Pick<Caller, 'key' | 'session' | 'member'>): boolean =>
  key?.development === true || session?.method === 'development' || member?.development === true;

interface CallerRun {
  readonly parent: string;
  /** The tags of the call, run or batch whose lock it is: their budgets count this call too. Absent: none. */
  readonly tags?: Tags;
  /**
   * Set for a line of a batch: the id that its call gets, which the batch has noted before. The call begins nothing of
   * its own: that belongs to whoever made the batch. Absent for the calls of an agent.
   */
  readonly call?: string;
}

/**
 * The account of calls that the gateway makes for itself, such as requests for the lists of MCP servers. It holds no
 * money.
 */
export const OWN_ACCOUNT = 'tollgate:gateway';

/** The account of callers without a credential. It never holds money. */
export const ANONYMOUS_ACCOUNT = 'tollgate:anonymous';

/** The sign-in message that a wallet signed for this request. */
interface CallerWallet {
  /** CAIP-10 id, with the network that the message names. */
  readonly caip10: string;
  /** The nonce of the message; null for none. Sensitive operations need an unused nonce that this gateway issued. */
  readonly nonce: string | null;
}

export interface CallerKey {
  /** Public identifier of the key: the hash it is stored under. */
  readonly hash: string;
  /** SHA-256 of the text that it was found by; absent if it was found by its hash. */
  readonly secret?: string;
  /** That text was replaced and works for a time, see letOldTextCount; absent for the present one. */
  readonly replaced?: true;
  readonly label: string;
  /** Keys of the development account. */
  readonly development: boolean;
  /** The rules of the key and of its member; null if it may call everything. */
  readonly access: Access | null;
  /** A person accepts each of its calls that may cost more; absent for none. */
  readonly askAbove?: MicroUsd;
  /** Tags of all its calls, which no request changes; absent for none. */
  readonly tags?: Tags;
  /** Whether its streams that break off are gone on with; absent where it does not say so. */
  readonly continues?: boolean;
  /** The member of the account that owns the key; absent for a key of the account itself. */
  readonly member?: string;
  /**
   * The key belongs to a member, or has a spending limit, a rate, an expiry, a list of services, tags or an asking
   * price. Absent: none of these.
   */
  readonly restricted?: true;
}

/** The member of the account by whose key, or for whom, a call is made; undefined for one of the account itself. */
export const memberOf = ({ key, member }: Pick<Caller, 'key' | 'member'>): string | undefined =>
  key?.member ?? member?.account;

/** A budget in which the calls of a caller count. */
export interface CallerBudget extends Budget {
  /** The owner: the key, one member of the account, the whole account, or the operator, who sets it for the account. */
  readonly scope: 'key' | 'member' | 'account' | 'operator';
  /** When it starts again from zero, in epoch milliseconds; null for never. */
  readonly resetsAt: number | null;
  /** The tag whose calls it counts; absent for all calls. */
  readonly tag?: { readonly name: string; readonly value: string };
  /** The error that hid what is carried to it: calls that count in it are refused. Absent: that is known. */
  readonly unsummed?: unknown;
}

export type TagBudget = CallerBudget & Required<Pick<CallerBudget, 'tag'>>;

/**
 * The caller of a call with tags: its budgets, with those of its tags. A call that is paid from the lock of another one
 * counts in the budgets of that lock alone. Throws GatewayError `unprocessable` if it has a tag with a budget that the
 * lock does not count in.
 */
export function countedByTags(caller: Caller, tags: Tags | undefined): Caller {
  const { budgets = [], tagBudgets, run } = caller;
  if (tags === undefined || tagBudgets === undefined) return caller;
  const has = (all: Tags, { tag: { name, value } }: TagBudget) => Object.hasOwn(all, name) && all[name] === value;
  const ofTags = tagBudgets.filter((budget) => has(tags, budget));
  const uncounted = run && ofTags.find((budget) => !has(run.tags ?? {}, budget));
  if (uncounted) {
    const { name, value } = uncounted.tag;
    const [payer, remedy] =
      run.call === undefined
        ? ['the call that pays for this one', 'leave it out']
        : ['this batch', 'give it to the whole batch, with the header x-tollgate-tags'];
    throw new GatewayError(
      'unprocessable',
      `The tag ${name}=${value} has a budget, which does not count ${payer}: ${remedy}`,
    );
  }
  return ofTags.length === 0 ? caller : { ...caller, budgets: [...budgets, ...ofTags] };
}

export interface AccountRates extends MinuteRates {
  /** The operator set its rate of requests, which replaces the gateway's own rates for accounts and for keys. */
  readonly requestsByOperator: boolean;
  /** The same of tokens. */
  readonly tokensByOperator: boolean;
}

/** Requests and tokens per minute; null for the gateway's own rate. */
export interface MinuteRates {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

export type MemberRole = 'viewer' | 'member' | 'admin' | 'owner';

/** The header with the account that a member acts for. */
export const ACCOUNT_HEADER = 'x-tollgate-account';

interface CallerMember {
  /** The account that the member signed in as. */
  readonly account: string;
  readonly role: MemberRole;
  /** The member's credential is an API key of its own account, not a wallet, a session or an access token. */
  readonly byKey: boolean;
  /** The member signed in to an account with play money. */
  readonly development: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The lowest role with which a member may use this route for an account. Absent: nobody acts for another account
     * here.
     */
    actsAs?: MemberRole;
    /** A changing route that makes no call, and is a part of calls: it uploads, cancels or deletes what they have. */
    ofCalls?: true;
  }
}

const NEEDED = Symbol('role');
type RoleHeaders = IncomingHttpHeaders & { [NEEDED]?: MemberRole };

/**
 * Lets members with at least the role `needed` act for an account in this request. The mark is a symbol on the headers,
 * because authentication gets only the headers, and no client can send a symbol.
 */
export function letAct(headers: IncomingHttpHeaders, needed: MemberRole): void {
  (headers as RoleHeaders)[NEEDED] = needed;
}

const SPENDS = Symbol('spends');
type SpendingHeaders = IncomingHttpHeaders & { [SPENDS]?: true };

/** Lets a session of a member call for an account in this request, and so spend its money. See letAct. */
export function letSpend(headers: IncomingHttpHeaders): void {
  letAct(headers, 'member');
  (headers as SpendingHeaders)[SPENDS] = true;
}

/** Whether the account that a member acts for pays for calls of this request. */
export const spends = (headers: IncomingHttpHeaders): boolean => (headers as SpendingHeaders)[SPENDS] === true;

export const nobodyActs = (): GatewayError =>
  new GatewayError(
    'permission_denied',
    `This endpoint does not accept ${ACCOUNT_HEADER}: call it with a key of that account instead`,
  );

/** The lowest role with which members may act in this request; undefined if nobody may. */
export const roleToAct = (headers: IncomingHttpHeaders): MemberRole | undefined => (headers as RoleHeaders)[NEEDED];

/**
 * The part of its account that owns what a caller begins: the running call of a run token, or `key <hash>` of a
 * restricted key. null: the whole account owns it. A caller with a part sees only what this part owns, and one without
 * sees everything of the account.
 */
export const ownPartOf = ({ key, run }: Pick<Caller, 'key' | 'run'>): string | null =>
  run !== undefined && run.call === undefined ? run.parent : key?.restricted ? `key ${key.hash}` : null;

/**
 * The caller of a request without a credential. Things that belong to an account (sessions, places to listen, held
 * calls) belong to the client's network instead, so strangers neither share them nor use up each other's.
 */
export function anonymousAt(address: string): Caller {
  const from = networkOf(address);
  return { account: `${ANONYMOUS_ACCOUNT}:${from}`, key: null, wallet: null, anonymous: { from } };
}

/**
 * Finds the caller of a request by its credential. `address`: the client's address. `calls`: see Pipeline.admit. Throws
 * or rejects with GatewayError `unauthorized`.
 */
export type Authenticate = (headers: IncomingHttpHeaders, address: string, calls?: boolean) => Caller | Promise<Caller>;

/** The error for a request that needs a credential and has none. */
export const needsCredential = (): GatewayError =>
  new GatewayError(
    'unauthorized',
    'This needs an account: send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…", or sign in with a wallet',
    {
      headers: { 'www-authenticate': 'Bearer, SIWx' },
    },
  );
