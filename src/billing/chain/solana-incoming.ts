import type { Address } from '@solana/kit';
import { ChainUnavailable, type Incoming, type IncomingPage } from './chain.ts';
import { isSignature } from './solana-address.ts';
import type { SignatureEntry, SolanaNode } from './solana-node.ts';
import { memoOf, movementsInto } from './solana-transaction.ts';

/** Transactions that are read for one page. */
const PAGE = 20;
/** What a node lists at once. */
const WALK_PAGE = 1_000;
/** A million transactions since the cursor: somebody has to look. */
const WALK_PAGES = 1_000;
/** Of what is between the cursor and now, the oldest are kept; the rest is walked again. */
const KEPT_MAX = 20_000;
/** Slots behind finality: nodes write the list of an account's transactions after the slot, and a slot that was read is never read again. */
const SETTLED_SLOTS = 32n;
/** Slots on top of what is final: at least so many. */
const FINAL_CONFIRMATIONS = 32;

interface Cursor {
  /** Everything before this slot was read, and of the slot itself what came up to the signature; all of it where that is null. */
  readonly slot: bigint;
  readonly signature: string | null;
}

/** What comes after a cursor, oldest first. */
interface Backlog {
  readonly after: string;
  readonly entries: readonly SignatureEntry[];
  /** Everything up to this slot is in `entries`, unless they were cut. */
  readonly upTo: bigint;
  readonly cut: boolean;
}

export interface SolanaIncoming {
  page(cursor: string | null): Promise<IncomingPage>;
  balanceAt(cursor: string): Promise<bigint | null>;
}

/** What came into the treasury's token account, in finality. The chain lists newest first and cursors go forwards, so each backlog is walked once and kept. */
export function createIncoming(node: SolanaNode, network: string, account: Address, asset: Address): SolanaIncoming {
  let backlog: Backlog | null = null;

  async function settled(): Promise<{ readonly slot: bigint; readonly upTo: bigint }> {
    const { slot } = await node.moment('finalized');
    return { slot, upTo: slot > SETTLED_SLOTS ? slot - SETTLED_SLOTS : 0n };
  }

  async function walk(text: string, cursor: Cursor): Promise<Backlog> {
    const { slot: minSlot, upTo } = await settled();
    let newestFirst: SignatureEntry[] = [];
    let cut = false;
    let before: string | undefined;
    for (let page = 0; page < WALK_PAGES; page += 1) {
      const entries = await node.signatures(account, 'finalized', { limit: WALK_PAGE, minSlot, ...(before === undefined ? {} : { before }) });
      const end = entries.findIndex(({ slot, signature }) => (cursor.signature === null ? slot <= cursor.slot : signature === cursor.signature));
      const fresh = end === -1 ? entries : entries.slice(0, end);
      newestFirst.push(...fresh.filter(({ slot }) => slot <= upTo));
      cut ||= newestFirst.length > KEPT_MAX;
      newestFirst = newestFirst.slice(-KEPT_MAX);
      const bottom = entries.length < WALK_PAGE;
      // A node that has forgotten the cursor's time has perhaps forgotten what came after it, too.
      if (end !== -1 || (bottom && cursor.signature === null && (await node.oldestSlot()) <= cursor.slot + 1n))
        return { after: text, entries: newestFirst.reverse(), upTo: upTo > cursor.slot ? upTo : cursor.slot, cut };
      if (bottom) break;
      before = entries.at(-1)?.signature;
    }
    throw new ChainUnavailable(`the Solana node's history does not reach back to ${text}, where reading it ended before`);
  }

  async function eventsOf({ signature, failed }: SignatureEntry): Promise<Incoming[]> {
    if (failed) return [];
    const transaction = await node.transaction(signature, 'finalized');
    if (transaction === null) throw new ChainUnavailable('the Solana node tells a transaction that it does not show');
    const movements = movementsInto(transaction, account, asset);
    const memo = memoOf(transaction);
    return movements.map(({ sender, amount }, at) => ({
      id: `${signature}:${at}`,
      transaction: signature,
      amount,
      height: transaction.slot,
      confirmations: FINAL_CONFIRMATIONS,
      final: true,
      sender,
      // A signed payment makes one movement. What makes one without having been signed for us has an id that nobody keeps.
      paymentId: movements.length === 1 && sender !== '' ? `${network}/${transaction.messageHash}` : null,
      memo,
    }));
  }

  return {
    async page(text) {
      if (text === null) {
        const { upTo } = await settled();
        return { events: [], cursor: `${upTo}:-`, height: upTo, more: false };
      }
      const cursor = parse(text);
      const { entries, upTo, cut } = backlog?.after === text && backlog.entries.length > 0 ? backlog : await walk(text, cursor);
      const batch = entries.slice(0, PAGE);
      const rest = entries.slice(PAGE);
      const events = (await Promise.all(batch.map(eventsOf))).flat();
      const last = batch.at(-1);
      const [next] = rest;
      // Within a slot only the signature says where reading ended.
      const within = last !== undefined && (next === undefined ? cut : next.slot === last.slot);
      const height = within ? last.slot - 1n : next === undefined ? upTo : next.slot - 1n;
      const after = within ? `${last.slot}:${last.signature}` : `${height}:-`;
      backlog = { after, entries: rest, upTo, cut };
      return { events, cursor: after, height, more: rest.length > 0 || cut };
    },

    async balanceAt(text) {
      const cursor = parse(text);
      if (cursor.signature !== null) return null;
      const { slot, amount } = await node.tokens(account);
      // Whatever changes the balance is in the account's list. Nothing there after the cursor, as of the balance's slot or later: so it is the cursor's.
      const [newest] = await node.signatures(account, 'finalized', { limit: 1, minSlot: slot });
      return slot >= cursor.slot && (newest === undefined || newest.slot <= cursor.slot) ? amount : null;
    },
  };
}

function parse(text: string): Cursor {
  const [slot = '', signature, ...more] = text.split(':');
  if (!/^\d{1,20}$/.test(slot) || more.length > 0 || (signature !== '-' && !isSignature(signature)))
    throw new Error(`a cursor of Solana is <slot>:<signature>, or <slot>:- for all of a slot, not ${JSON.stringify(text.slice(0, 120))}`);
  return { slot: BigInt(slot), signature: signature === '-' ? null : signature };
}
