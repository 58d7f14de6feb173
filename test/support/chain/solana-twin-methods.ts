import bs58 from 'bs58';
import { getTransactionDecoder } from '@solana/kit';
import { DEVNET_GENESIS, TOKEN_PROGRAM, tokenAccountOf } from './solana-accounts.ts';
import { amountOf, type Commitment, type Landed, type SvmAccount, type SvmChain } from './solana-svm.ts';
import type { TwinFaults } from './solana-twin.ts';

export interface TwinView {
  readonly chain: SvmChain;
  readonly faults: TwinFaults;
}

/** A JSON-RPC error. */
export class RpcRefusal extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

type Method = (view: TwinView, params: readonly unknown[]) => unknown;
interface Config {
  readonly commitment?: Commitment;
  readonly minContextSlot?: number;
  readonly encoding?: string;
  readonly limit?: number;
  readonly before?: string;
  readonly until?: string;
  readonly searchTransactionHistory?: boolean;
  readonly sigVerify?: boolean;
  readonly replaceRecentBlockhash?: boolean;
  readonly skipPreflight?: boolean;
  readonly preflightCommitment?: Commitment;
  readonly maxSupportedTransactionVersion?: number;
}

/** A node without history remembers signatures for about this many slots. */
const STATUS_CACHE_SLOTS = 300;

/** The methods that our chain and the x402 libraries call. */
export const METHODS: Readonly<Record<string, Method>> = {
  getGenesisHash: () => DEVNET_GENESIS,
  getVersion: () => ({ 'solana-core': '2.3.0', 'feature-set': 0 }),
  getHealth({ faults }) {
    if (faults.unhealthy) throw new RpcRefusal(-32005, 'Node is behind by 200 slots', { numSlotsBehind: 200 });
    return 'ok';
  },
  getFirstAvailableBlock: ({ faults }) => faults.forgetBefore,
  getRecentPrioritizationFees: ({ chain }) => [{ slot: chain.slot, prioritizationFee: 0 }],
  getSlot: (view, params) => slotOf(view, config(params, 0)),
  getBlockHeight: (view, params) => view.chain.heightAt(slotOf(view, config(params, 0))),
  getBlockTime: ({ chain }, params) => Math.floor(chain.timeAt(Number(params[0])) / 1_000),
  getEpochInfo(view, params) {
    const absoluteSlot = slotOf(view, config(params, 0));
    const blockHeight = view.chain.heightAt(absoluteSlot);
    return {
      absoluteSlot,
      blockHeight,
      epoch: 0,
      slotIndex: absoluteSlot,
      slotsInEpoch: 432_000,
      transactionCount: view.chain.landed.length,
    };
  },
  getLatestBlockhash(view, params) {
    const slot = slotOf(view, config(params, 0));
    return within(slot, view.chain.blockhashAt(slot));
  },
  isBlockhashValid(view, params) {
    const slot = slotOf(view, config(params, 1));
    return within(slot, view.chain.blockhashValid(String(params[0]), slot));
  },
  getMinimumBalanceForRentExemption: ({ chain }, params) => Number(chain.rent(Number(params[0]))),
  getBalance(view, params) {
    const slot = slotOf(view, config(params, 1));
    return within(slot, Number(view.chain.account(String(params[0]), slot)?.lamports ?? 0n));
  },
  getAccountInfo(view, params) {
    const { encoding } = config(params, 1);
    const slot = slotOf(view, config(params, 1));
    return within(slot, shown(view.chain.account(String(params[0]), slot), encoding));
  },
  getMultipleAccounts(view, params) {
    const { encoding } = config(params, 1);
    const slot = slotOf(view, config(params, 1));
    return within(
      slot,
      (params[0] as string[]).map((address) => shown(view.chain.account(address, slot), encoding)),
    );
  },
  getTokenAccountBalance(view, params) {
    const slot = slotOf(view, config(params, 1));
    const account = view.chain.account(String(params[0]), slot);
    if (account === null) throw new RpcRefusal(-32602, 'Invalid param: could not find account');
    return within(slot, amountOf(tokenAccountOf(account.data).amount, 6));
  },
  simulateTransaction(view, params) {
    const asked = config(params, 1);
    const slot = slotOf(view, asked);
    const { err, logs, units } = view.chain.simulate(wireOf(params[0]), slot, asked.sigVerify ?? false);
    return within(slot, { err, logs, accounts: null, unitsConsumed: units, returnData: null, innerInstructions: null });
  },
  sendTransaction(view, params) {
    const asked = config(params, 1);
    if (view.faults.refuseSends) throw new RpcRefusal(-32005, 'Node is unhealthy');
    const wire = wireOf(params[0]);
    const { signatures } = getTransactionDecoder().decode(wire);
    if (Object.values(signatures).some((one) => one === null))
      throw new RpcRefusal(-32003, 'Transaction signature verification failure');
    if (asked.skipPreflight !== true) {
      const { err, logs } = view.chain.simulate(
        wire,
        slotOf(view, { commitment: asked.preflightCommitment ?? 'finalized' }),
        true,
      );
      if (err !== null)
        throw new RpcRefusal(-32002, `Transaction simulation failed: ${JSON.stringify(err)}`, { err, logs });
    }
    if (view.faults.dropNext > 0) view.faults.dropNext -= 1;
    else view.chain.take(wire, view.faults.landAfter);
    return bs58.encode(Object.values(signatures)[0] as Uint8Array);
  },
  getSignatureStatuses(view, params) {
    const { searchTransactionHistory } = config(params, 1);
    const now = slotOf(view, { commitment: 'processed' });
    return within(
      now,
      (params[0] as string[]).map((signature) => {
        const landed = known(view, signature);
        if (landed === null || (searchTransactionHistory !== true && now - landed.slot > STATUS_CACHE_SLOTS))
          return null;
        const level = levelOf(view, landed);
        return {
          slot: landed.slot,
          confirmations: level === 'finalized' ? null : now - landed.slot,
          err: landed.err,
          status: landed.err === null ? { Ok: null } : { Err: landed.err },
          confirmationStatus: level,
        };
      }),
    );
  },
  getTransaction(view, params) {
    const { commitment = 'finalized', encoding, maxSupportedTransactionVersion } = config(params, 1);
    const landed = known(view, String(params[0]));
    if (landed === null || landed.slot > view.chain.slotAt(commitment, view.faults.staleBy)) return null;
    if (encoding !== 'base64') throw new RpcRefusal(-32602, 'the twin tells transactions in base64');
    if (landed.version !== 'legacy' && maxSupportedTransactionVersion === undefined)
      throw new RpcRefusal(-32015, 'Transaction version (0) is not supported');
    return {
      slot: landed.slot,
      blockTime: Math.floor(view.chain.timeAt(landed.slot) / 1_000),
      version: landed.version,
      transaction: [Buffer.from(landed.wire).toString('base64'), 'base64'],
      meta: landed.meta,
    };
  },
  getSignaturesForAddress(view, params) {
    const { limit = 1_000, before, until, ...asked } = config(params, 1);
    const slot = slotOf(view, asked);
    const all = view.chain.landed.filter(
      (one) => one.slot <= slot && one.slot >= view.faults.forgetBefore && one.keys.includes(String(params[0])),
    );
    all.reverse();
    const from = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1;
    if (before !== undefined && from === 0) return [];
    const to = until === undefined ? -1 : all.findIndex(({ signature }) => signature === until);
    return all
      .slice(from, to === -1 ? undefined : to)
      .slice(0, limit)
      .map((one) => ({
        signature: one.signature,
        slot: one.slot,
        err: one.err,
        memo: one.memo,
        blockTime: Math.floor(view.chain.timeAt(one.slot) / 1_000),
        confirmationStatus: levelOf(view, one),
      }));
  },
};

function config(params: readonly unknown[], at: number): Config {
  return params[at] ?? {};
}

function slotOf({ chain, faults }: TwinView, { commitment = 'finalized', minContextSlot }: Config): number {
  const slot = chain.slotAt(commitment, faults.staleBy);
  if (minContextSlot !== undefined && minContextSlot > slot) {
    throw new RpcRefusal(-32016, 'Minimum context slot has not been reached', { contextSlot: slot });
  }
  return slot;
}

function within(slot: number, value: unknown): unknown {
  return { context: { slot, apiVersion: '2.3.0' }, value };
}

function known({ chain, faults }: TwinView, signature: string): Landed | null {
  const landed = chain.find(signature);
  return landed === null || landed.slot < faults.forgetBefore || landed.slot > chain.slot - faults.staleBy
    ? null
    : landed;
}

function levelOf({ chain, faults }: TwinView, landed: Landed): Commitment {
  const levels = ['finalized', 'confirmed'] as const;
  return levels.find((level) => landed.slot <= chain.slotAt(level, faults.staleBy)) ?? 'processed';
}

function wireOf(base64: unknown): Uint8Array {
  const wire = Uint8Array.from(Buffer.from(String(base64), 'base64'));
  if (wire.length > 1_232) throw new RpcRefusal(-32602, `base64 encoded too large: ${wire.length} bytes (max: 1232)`);
  return wire;
}

function shown(account: SvmAccount | null, encoding: string | undefined): unknown {
  if (account === null) return null;
  const { data, lamports, programAddress: owner, executable } = account;
  const rest = { lamports: Number(lamports), owner, executable, rentEpoch: 0, space: data.length };
  if (encoding === 'jsonParsed' && owner === TOKEN_PROGRAM && data.length === 165) {
    const { mint, owner: wallet, amount } = tokenAccountOf(data);
    const info = { isNative: false, mint, owner: wallet, state: 'initialized', tokenAmount: amountOf(amount, 6) };
    return { ...rest, data: { parsed: { info, type: 'account' }, program: 'spl-token', space: 165 } };
  }
  return { ...rest, data: [Buffer.from(data).toString('base64'), 'base64'] };
}
