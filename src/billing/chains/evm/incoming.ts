import { getAddress, type Hex } from 'viem';
import type { MicroUsd } from '#billing/amounts';
import { dropOldest } from '#wire';
import { ChainUnavailable, type Incoming, type IncomingPage, type SnapshotRows } from '../chain.ts';
import { createArrivals, type Arrived, logsOfTransaction } from './transfers.ts';
import { TRANSFER, carriedOut, topicOf, transferOf, type EvmAsset } from './asset.ts';
import { blockAt, cursorOf, evmHeads, stillThere, type EvmHeads } from './blocks.ts';
import { evmPaymentId } from './payment.ts';
import { isPruned, type EvmLog, type EvmBlock, type EvmNode } from './rpc.ts';
import { chainEvent, type SightingSetup } from './sightings.ts';

/** A page ends with the block in which it reaches this length. */
const PAGE_EVENTS = 200;
/** How many receipts are requested at the same time. */
const AT_ONCE = 4;
/** The data of a transfer of 0. Anybody can make thousands of them in a block, so their receipts are not requested. */
const ZERO = /^0x0{64}$/;

/**
 * Reads the transfers into the treasury in order. A cursor is `<number>/<hash>` of the last block that was read, which
 * was final.
 */
interface EvmIncoming {
  page(cursor: string | null, upTo?: bigint): Promise<IncomingPage>;
  /** null: the node no longer has the state of that block, and no snapshot has its balance. */
  balanceAt(cursor: string): Promise<MicroUsd | null>;
}

export function createEvmIncoming(
  setup: SightingSetup & { readonly network: string; readonly snapshots: SnapshotRows | null },
): EvmIncoming {
  const { network, node, asset, treasury, finality, reader } = setup;
  const arrivals = createArrivals(node, asset, treasury);
  const snapshots = createSnapshots(node, asset, treasury, setup.snapshots);

  async function page(cursor: string | null, most?: bigint): Promise<IncomingPage> {
    const heads = await evmHeads(node, finality);
    if (cursor === null) return { events: [], cursor: cursorOf(heads.final), height: heads.final.number, more: false };
    const seen = await blockAt(node, network, cursor, heads.latest.number);
    // The node's finalized block may be older than the cursor, for example on another machine or after a restart of the
    // node.
    const limit = await snapshots.endOf(seen.number, heads, most);
    if (seen.number >= limit) return { events: [], cursor, height: seen.number, more: false };

    const from = seen.number + 1n;
    const result = await reader.read(
      { address: asset.address, topics: [TRANSFER, null, topicOf(treasury)] },
      from,
      limit,
    );
    const into = upTo(result.logs, PAGE_EVENTS);
    const last = into.length < result.logs.length ? into.at(-1)!.block : result.to;
    const end = await node.block(last);
    if (!end) throw new ChainUnavailable(`The node does not know block ${last}`);
    const cut = await cutOf({ first: from, last }, into);
    const events: Incoming[] = [];
    const worth = into.filter(({ data }) => !ZERO.test(data));
    const transactions = [...Map.groupBy(worth, (log) => log.transaction).values()];
    for (let at = 0; at < transactions.length; at += AT_ONCE) {
      const some = await Promise.all(transactions.slice(at, at + AT_ONCE).map((logs) => eventsOf(logs, heads, cut)));
      events.push(...some.flat());
    }
    await stillThere(node, [seen, end]);
    return { events, cursor: cursorOf(end), height: last, more: last < limit };
  }

  /**
   * Finds which part of each Transfer arrived. If the balances at both ends of the range agree with all Transfers
   * between, they are sufficient. Otherwise each block is checked. A balance that grew by more than the logs say means
   * that the node left out logs, so the range must be read again.
   */
  async function cutOf(
    range: { readonly first: bigint; readonly last: bigint },
    into: readonly EvmLog[],
  ): Promise<Cut> {
    const out: EvmLog[] = [];
    for (let from = range.first; from <= range.last;) {
      const part = await reader.read(
        { address: asset.address, topics: [TRANSFER, topicOf(treasury)] },
        from,
        range.last,
      );
      out.push(...part.logs);
      from = part.to + 1n;
    }
    const missing = await arrivals.missing(range, into, out);
    if (missing !== null && missing < 0n)
      throw new ChainUnavailable(
        `The treasury received ${-missing} more than the node's logs of blocks ${range.first} to ${range.last} show`,
      );
    if (missing === null || missing === 0n) return async () => (reported) => reported;
    const blocks = new Map<Hex, ReturnType<typeof arrivals.conversionOf>>();
    return (log) => {
      const known = blocks.get(log.blockHash) ?? arrivals.conversionOf({ number: log.block, hash: log.blockHash });
      blocks.set(log.blockHash, known);
      return known;
    };
  }

  /** The events of one transaction. */
  async function eventsOf(into: readonly EvmLog[], heads: EvmHeads, cut: Cut): Promise<Incoming[]> {
    const logs = await logsOfTransaction({ node, asset: asset.address, payee: treasury, log: into[0]! });
    const payments = new Map(
      carriedOut(logs, asset.address, treasury).flatMap((one) =>
        one.transfer ? [[one.transfer.log.index, one] as const] : [],
      ),
    );
    const events: Incoming[] = [];
    for (const log of into) {
      const transfer = transferOf(log);
      // A transfer from the treasury to itself brings nothing in.
      if (!transfer || transfer.from === treasury) continue;
      const amount = (await cut(log))(transfer.value);
      if (amount === 0n) continue;
      const payment = payments.get(log.index);
      const paymentId = payment ? evmPaymentId(network, asset.address, payment.authorizer, payment.nonce) : null;
      events.push({
        ...chainEvent(log, amount, heads, true),
        final: true,
        sender: getAddress(transfer.from),
        paymentId,
        memo: null,
      });
    }
    return events;
  }

  return {
    page,
    async balanceAt(cursor) {
      const { latest } = await evmHeads(node, finality);
      const block = await blockAt(node, network, cursor, latest.number);
      try {
        const balance = await asset.balanceOf(treasury, block.number);
        await stillThere(node, [block]);
        return balance;
      } catch (error) {
        if (!isPruned(error)) throw error;
        return snapshots.instead(cursor);
      }
    },
  };
}

type Cut = (log: EvmLog) => Promise<Arrived>;

/** The first `enough` logs, completed to the end of their last block. */
function upTo(logs: readonly EvmLog[], enough: number): readonly EvmLog[] {
  const last = logs[enough - 1]?.block;
  return last === undefined ? logs : logs.filter((log) => log.block <= last);
}

/** One snapshot is taken with each look at incoming transfers, so this covers hours. */
const SNAPSHOTS_MAX = 10_000;

/**
 * Balances of the treasury that were read while their blocks were the newest. A node without old state can no longer
 * report them when such a block is final.
 */
interface Snapshots {
  /**
   * The block with which a page of incoming transfers may end: the final block, or, if the node forgets old state, the
   * newest final block with a snapshot. It is `seen` while the next snapshot is not final yet. It is never later than
   * `most`.
   */
  endOf(seen: bigint, heads: EvmHeads, most?: bigint): Promise<bigint>;
  /** The balance at a cursor whose state the node has forgotten; null if no snapshot has it. */
  instead(cursor: string): Promise<MicroUsd | null>;
}

/** `rows` stores the snapshots beyond the process and shares them with other gateways; null: in memory only. */
function createSnapshots(node: EvmNode, asset: EvmAsset, treasury: Hex, rows: SnapshotRows | null): Snapshots {
  const recent = new Map<string, { readonly number: bigint; readonly balance: MicroUsd }>();
  let forgets = false;
  let isRead = rows === null;

  /** Reads the stored snapshots. If one exists, the node forgets old state. Rejects with the database's error. */
  async function read(): Promise<void> {
    if (isRead) return;
    const snapshots = await rows!.list(treasury, SNAPSHOTS_MAX);
    isRead = true;
    for (const { cursor, height, balance } of snapshots.toReversed()) recent.set(cursor, { number: height, balance });
    forgets ||= snapshots.length > 0;
  }

  /** Takes a snapshot of the newest block. If the node does not answer, the next page tries again. */
  async function take(latest: EvmBlock, seen: bigint): Promise<void> {
    const cursor = cursorOf(latest);
    if (recent.has(cursor)) return;
    try {
      const balance = await asset.balanceOf(treasury, latest.number);
      await stillThere(node, [latest]);
      dropOldest(recent, SNAPSHOTS_MAX - 1);
      recent.set(cursor, { number: latest.number, balance });
      await rows?.keep(treasury, { cursor, height: latest.number, balance });
      await rows?.forget(treasury, seen);
    } catch (error) {
      if (!(error instanceof ChainUnavailable)) throw error;
    }
  }

  /** The newest snapshot after block `after` and up to block `upTo`; null if no such snapshot exists. */
  function between(after: bigint, upTo: bigint): bigint | null {
    let newest: bigint | null = null;
    for (const { number } of recent.values())
      if (number > after && number <= upTo && (newest === null || number > newest)) newest = number;
    return newest;
  }

  return {
    async endOf(seen, { latest, final }, most = final.number) {
      await read();
      const end = most < final.number ? most : final.number;
      if (!forgets) return end;
      await take(latest, seen);
      const known = between(seen, end);
      if (known !== null) return known;
      // A later snapshot becomes final soon, so the page waits for it.
      return between(end, latest.number) === null ? end : seen;
    },
    async instead(cursor) {
      await read();
      forgets = true;
      return recent.get(cursor)?.balance ?? null;
    },
  };
}
