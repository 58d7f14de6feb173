import type { Address } from '@solana/kit';
import { ChainUnavailable, type Incoming, type IncomingPage } from '../chain.ts';
import type { SolanaNode } from './node.ts';
import type { SignatureEntry } from './node-answers.ts';
import { memoOf, movementsInto } from './transaction.ts';

/** Transactions that are read for one page. */
const PAGE = 20;
/** Transactions that a node lists at once. */
const WALK_PAGE = 1_000;
/** A million transactions since the cursor: somebody has to look. */
const WALK_PAGES = 1_000;
/** Of what is between the cursor and now, the oldest are kept; the rest is walked again. */
const KEPT_MAX = 20_000;
/**
 * Slots behind finality: nodes write the list of an account's transactions after the slot, and a slot that was read
 * is never read again.
 */
const SETTLED_SLOTS = 32n;
/** Slots on top of what is final: at least so many. */
const FINAL_CONFIRMATIONS = 32;

interface Cursor {
  /** Everything up to this slot was read. */
  readonly slot: bigint;
  /**
   * The last that was read, perhaps of the next slot; null where there was none. A list that does not hold it is
   * not the whole list.
   */
  readonly last: Pick<SignatureEntry, 'slot' | 'signature'> | null;
}

/** The transactions after a cursor, oldest first. */
interface Backlog {
  readonly after: string;
  readonly entries: readonly SignatureEntry[];
  /** Everything up to this slot is in `entries`, unless they were cut. */
  readonly upTo: bigint;
  readonly cut: boolean;
}

interface SolanaIncoming {
  page(cursor: string | null, most?: bigint): Promise<IncomingPage>;
  balanceAt(cursor: string): Promise<bigint | null>;
}

/**
 * Reads what came into the treasury's token account, in finality. The chain lists newest first and cursors go
 * forwards, so each backlog is walked once and kept. `before`: the account of the treasury that hands over to this one;
 * what one transaction brings into both is told of each by its own name.
 */
export function createIncoming(
  node: SolanaNode,
  network: string,
  account: Address,
  asset: Address,
  before: Address | null,
): SolanaIncoming {
  let backlog: Backlog | null = null;

  async function settled(most?: bigint): Promise<{ readonly slot: bigint; readonly upTo: bigint }> {
    const { slot } = await node.moment('finalized');
    const upTo = slot > SETTLED_SLOTS ? slot - SETTLED_SLOTS : 0n;
    return { slot, upTo: most !== undefined && most < upTo ? most : upTo };
  }

  async function walk(text: string, { slot: done, last }: Cursor, most?: bigint): Promise<Backlog> {
    const { slot: minSlot, upTo } = await settled(most);
    let newestFirst: SignatureEntry[] = [];
    let cut = false;
    let before: string | undefined;
    for (let page = 0; page < WALK_PAGES; page += 1) {
      const entries = await node.signatures(account, 'finalized', {
        limit: WALK_PAGE,
        minSlot,
        ...(before === undefined ? {} : { before }),
      });
      const end = entries.findIndex(({ signature }) => signature === last?.signature);
      newestFirst.push(...(end === -1 ? entries : entries.slice(0, end)).filter(({ slot }) => slot <= upTo));
      cut ||= newestFirst.length > KEPT_MAX;
      newestFirst = newestFirst.slice(-KEPT_MAX);
      const bottom = entries.length < WALK_PAGE;
      if (end === -1 && bottom) {
        // The last may be older than all that the node still has. Then everything after it must be there.
        const oldest = await node.oldestSlot();
        if (oldest > done + 1n || (last !== null && oldest <= last.slot)) break;
        newestFirst = newestFirst.filter(({ slot }) => slot > done);
      }
      if (end !== -1 || bottom)
        return { after: text, entries: newestFirst.reverse(), upTo: upTo > done ? upTo : done, cut };
      before = entries.at(-1)?.signature;
    }
    throw new ChainUnavailable(
      `the Solana node's list of the treasury's transactions does not reach back to ${text}, where reading it ended before`,
    );
  }

  async function eventsOf({ signature, failed }: SignatureEntry): Promise<Incoming[]> {
    if (failed) return [];
    const transaction = await node.transaction(signature, 'finalized');
    if (transaction === null) throw new ChainUnavailable('the Solana node tells a transaction that it does not show');
    const movements = movementsInto(transaction, account, asset);
    const memo = memoOf(transaction);
    // The other reader tells of it too. Signed payments pay one treasury.
    const paysBoth = before !== null && movementsInto(transaction, before, asset).length > 0;
    return movements.map(({ sender, amount }, at) => ({
      id: paysBoth ? `${signature}:${account}:${at}` : `${signature}:${at}`,
      transaction: signature,
      amount,
      height: transaction.slot,
      confirmations: FINAL_CONFIRMATIONS,
      final: true,
      sender,
      // A signed payment makes one movement. What makes one without having been signed for us has an id that nobody
      // keeps.
      paymentId: !paysBoth && movements.length === 1 && sender !== '' ? `${network}/${transaction.messageHash}` : null,
      memo,
    }));
  }

  return {
    async page(text, most) {
      if (text === null) {
        const { slot, upTo } = await settled();
        const entries = await node.signatures(account, 'finalized', { limit: WALK_PAGE, minSlot: slot });
        const last = entries.find((entry) => entry.slot <= upTo) ?? null;
        return { events: [], cursor: textOf({ slot: upTo, last }), height: upTo, more: false };
      }
      const cursor = parse(text);
      const { entries, upTo, cut } =
        backlog?.after === text && backlog.entries.length > 0 && (most === undefined || backlog.upTo <= most)
          ? backlog
          : await walk(text, cursor, most);
      const batch = entries.slice(0, PAGE);
      const rest = entries.slice(PAGE);
      const events = (await Promise.all(batch.map(eventsOf))).flat();
      const last = batch.at(-1) ?? cursor.last;
      const [next] = rest;
      // The slot of the last may hold more than was read of it.
      const height = next !== undefined ? next.slot - 1n : cut && last !== null ? last.slot - 1n : upTo;
      const after = textOf({ slot: height, last });
      backlog = { after, entries: rest, upTo, cut };
      return { events, cursor: after, height, more: rest.length > 0 || cut };
    },

    async balanceAt(text) {
      const cursor = parse(text);
      if ((await node.account(account, 'finalized')) === null)
        throw new ChainUnavailable(
          `the treasury's token account ${account} is new and not final yet, which takes about half a minute`,
        );
      const { slot, amount } = await node.tokens(account);
      // Whatever changes the balance is in the account's list: nothing there after the cursor's last, as of the
      // balance's slot or later, so it is the cursor's.
      const [newest] = await node.signatures(account, 'finalized', { limit: 1, minSlot: slot });
      return slot >= cursor.slot && newest?.signature === cursor.last?.signature ? amount : null;
    },
  };
}

function textOf({ slot, last }: Cursor): string {
  return last === null ? `${slot}` : `${slot}:${last.slot}:${last.signature}`;
}

function parse(text: string): Cursor {
  const match = /^(\d{1,20})(?::(\d{1,20}):([1-9A-HJ-NP-Za-km-z]{64,88}))?$/.exec(text);
  if (match === null)
    throw new Error(
      `a cursor of Solana is <slot>:<slot>:<signature> of the last that was read, not ${JSON.stringify(text.slice(0, 120))}`,
    );
  const [, slot = '', of, signature] = match;
  return {
    slot: BigInt(slot),
    last: of === undefined || signature === undefined ? null : { slot: BigInt(of), signature },
  };
}
