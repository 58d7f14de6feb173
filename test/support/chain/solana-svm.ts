import { createHash } from 'node:crypto';
import bs58 from 'bs58';
import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit';
import { LiteSVM } from 'litesvm';
import { ataOf, tokenAccountOf, USDC, TOKEN_PROGRAM } from './solana-accounts.ts';

export type Commitment = 'processed' | 'confirmed' | 'finalized';

/** A transaction in a block, successful or failed, in the form of `getTransaction`. */
export interface Landed {
  readonly signature: string;
  readonly slot: number;
  readonly wire: Uint8Array;
  readonly version: 'legacy' | number;
  readonly keys: readonly string[];
  readonly err: unknown;
  readonly memo: string | null;
  readonly meta: Readonly<Record<string, unknown>>;
}

export interface SvmAccount {
  readonly lamports: bigint;
  readonly data: Uint8Array;
  readonly programAddress: string;
  readonly executable: boolean;
}

/** The part of litesvm that is used here. litesvm is built with a newer kit, whose branded types differ from ours. */
interface Vm {
  withBlockhashCheck(check: boolean): Vm;
  withSigverify(check: boolean): Vm;
  warpToSlot(slot: bigint): void;
  minimumBalanceForRentExemption(length: bigint): bigint;
  getAccount(address: string): ({ exists: true } & SvmAccount) | { exists: false };
  setAccount(account: SvmAccount & { address: string; space: bigint }): void;
  sendTransaction(transaction: unknown): Outcome;
  simulateTransaction(transaction: unknown): Outcome;
}
interface Outcome {
  err?(): unknown;
  meta?(): Metadata;
  logs?(): string[];
}
interface Metadata {
  logs(): string[];
  computeUnitsConsumed(): bigint;
  innerInstructions(): {
    instruction(): { programIdIndex(): number; accounts(): Uint8Array; data(): Uint8Array };
    stackHeight(): number;
  }[][];
}

const FIRST_SLOT = 10_000;
const BLOCKHASH_AGE = 150;
/** The number of slots without a block. It makes tests fail that confuse a slot with a block height. */
const SKIPPED = 37;
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';

/**
 * The blocks of the Solana twin. They are made by the real virtual machine. Slots pass only when the test says so. The
 * state at each commitment level follows from the age of the blocks.
 */
export class SvmChain {
  readonly landed: Landed[] = [];
  confirmAfter: number;
  finalizeAfter: number;
  slot = FIRST_SLOT;
  private readonly began = Date.now();
  private readonly vm: Vm;
  private readonly bySignature = new Map<string, Landed>();
  private readonly byMessage = new Set<string>();
  private readonly hashes = new Map<string, number>();
  private readonly changes = new Map<string, { slot: number; before: SvmAccount | null }[]>();
  private readonly waiting: { wire: Uint8Array; slot: number }[] = [];

  constructor(confirmAfter: number, finalizeAfter: number) {
    this.confirmAfter = confirmAfter;
    this.finalizeAfter = finalizeAfter;
    this.vm = (new LiteSVM() as unknown as Vm).withBlockhashCheck(false);
    for (let slot = this.slot - finalizeAfter; slot <= this.slot; slot += 1) this.hashes.set(blockhashOf(slot), slot);
    this.vm.warpToSlot(BigInt(this.slot));
  }

  /** Lets slots pass. */
  advance(slots: number): void {
    for (let passed = 0; passed < slots; passed += 1) {
      this.slot += 1;
      this.hashes.set(blockhashOf(this.slot), this.slot);
      const due = this.waiting.filter(({ slot }) => slot <= this.slot);
      for (const one of due) {
        this.waiting.splice(this.waiting.indexOf(one), 1);
        this.execute(one.wire);
      }
    }
    this.vm.warpToSlot(BigInt(this.slot));
  }

  /** Puts a transaction into the next block, or into a block this many slots later. */
  take(wire: Uint8Array, later: number): void {
    if (later > 0) {
      this.waiting.push({ wire, slot: this.slot + later });
      return;
    }
    this.advance(1);
    this.execute(wire);
  }

  slotAt(level: Commitment, staleBy = 0): number {
    const age =
      level === 'processed'
        ? 0
        : level === 'confirmed'
          ? this.confirmAfter
          : Math.max(this.finalizeAfter, this.confirmAfter);
    return this.slot - staleBy - age;
  }

  /** The time of a slot in epoch milliseconds. Time passes with the slots. */
  timeAt(slot: number): number {
    return this.began + (slot - FIRST_SLOT) * 400;
  }

  heightAt(slot: number): number {
    return slot - SKIPPED;
  }

  blockhashAt(slot: number): { blockhash: string; lastValidBlockHeight: number } {
    return { blockhash: blockhashOf(slot), lastValidBlockHeight: this.heightAt(slot) + BLOCKHASH_AGE };
  }

  /** Whether a blockhash is valid at a slot. A hash that was made after this slot is unknown there. */
  blockhashValid(blockhash: string, slot: number): boolean {
    const made = this.hashes.get(blockhash);
    return made !== undefined && made <= slot && slot - made <= BLOCKHASH_AGE;
  }

  find(signature: string): Landed | null {
    return this.bySignature.get(signature) ?? null;
  }

  account(address: string, slot = this.slot): SvmAccount | null {
    const later = this.changes.get(address)?.find((change) => change.slot > slot);
    return later === undefined ? this.now(address) : later.before;
  }

  setAccount(address: string, account: SvmAccount): void {
    this.vm.setAccount({ address, space: BigInt(account.data.length), ...account });
  }

  rent(bytes: number): bigint {
    return this.vm.minimumBalanceForRentExemption(BigInt(bytes));
  }

  simulate(wire: Uint8Array, slot: number, sigVerify: boolean): { err: unknown; logs: string[]; units: number } {
    const { transaction, compiled } = decode(wire);
    const refusal = this.refusal(wire, slot);
    if (refusal !== null) return { err: refusal, logs: [], units: 0 };
    if (sigVerify && Object.values(transaction.signatures).some((one) => one === null))
      return { err: 'SignatureFailure', logs: [], units: 0 };
    this.vm.withSigverify(false);
    const outcome = this.vm.simulateTransaction(transaction);
    this.vm.withSigverify(true);
    const meta = outcome.meta?.();
    return {
      err: outcome.err === undefined ? null : errorOf(outcome.err(), compiled.instructions.length),
      logs: meta?.logs() ?? [],
      units: Number(meta?.computeUnitsConsumed() ?? 0n),
    };
  }

  /** The error that a node returns before it executes a transaction, or null. */
  refusal(wire: Uint8Array, slot = this.slot): string | null {
    const { transaction, compiled } = decode(wire);
    if (this.byMessage.has(hashOf(transaction.messageBytes))) return 'AlreadyProcessed';
    return this.blockhashValid(compiled.lifetimeToken, slot) ? null : 'BlockhashNotFound';
  }

  private now(address: string): SvmAccount | null {
    const account = this.vm.getAccount(address);
    return account.exists ? account : null;
  }

  private execute(wire: Uint8Array): void {
    if (this.refusal(wire) !== null) return;
    const { transaction, compiled } = decode(wire);
    const keys: readonly string[] = compiled.staticAccounts;
    const before = keys.map((key) => this.now(key));
    const outcome = this.vm.sendTransaction(transaction);
    const err = outcome.err === undefined ? null : errorOf(outcome.err(), compiled.instructions.length);
    // A transaction that fails before its instructions run isn't in any block.
    if (err !== null && !(typeof err === 'object' && 'InstructionError' in err)) return;
    const after = keys.map((key) => this.now(key));
    for (const [at, key] of keys.entries()) {
      const changed = this.changes.get(key) ?? [];
      changed.push({ slot: this.slot, before: before[at] ?? null });
      this.changes.set(key, changed);
    }
    const metadata = outcome.err === undefined ? (outcome as unknown as Metadata) : (outcome.meta?.() as Metadata);
    const memo = compiled.instructions.find((one) => keys[one.programAddressIndex] === MEMO_PROGRAM);
    const signature = bs58.encode(Object.values(transaction.signatures)[0] as Uint8Array);
    const landed: Landed = {
      signature,
      slot: this.slot,
      wire,
      version: compiled.version,
      keys,
      err,
      memo: memo === undefined ? null : `[${memo.data?.length ?? 0}] ${Buffer.from(memo.data ?? []).toString('utf8')}`,
      meta: {
        err,
        status: err === null ? { Ok: null } : { Err: err },
        fee: Number((before[0]?.lamports ?? 0n) - (after[0]?.lamports ?? 0n)),
        preBalances: before.map((one) => Number(one?.lamports ?? 0n)),
        postBalances: after.map((one) => Number(one?.lamports ?? 0n)),
        preTokenBalances: before.flatMap(tokenBalance),
        postTokenBalances: after.flatMap(tokenBalance),
        innerInstructions: metadata
          .innerInstructions()
          .flatMap((list, index) => (list.length === 0 ? [] : [{ index, instructions: list.map(inner) }])),
        logMessages: metadata.logs(),
        loadedAddresses: { writable: [], readonly: [] },
        computeUnitsConsumed: Number(metadata.computeUnitsConsumed()),
        rewards: [],
      },
    };
    this.landed.push(landed);
    this.bySignature.set(signature, landed);
    this.byMessage.add(hashOf(transaction.messageBytes));
  }

  /** The token balance of a wallet. */
  tokens(owner: string, level: Commitment = 'processed'): bigint {
    const account = this.account(ataOf(owner), this.slotAt(level));
    return account === null ? 0n : tokenAccountOf(account.data).amount;
  }
}

function inner(one: ReturnType<Metadata['innerInstructions']>[number][number]): unknown {
  const instruction = one.instruction();
  return {
    programIdIndex: instruction.programIdIndex(),
    accounts: [...instruction.accounts()],
    data: bs58.encode(instruction.data()),
    stackHeight: one.stackHeight(),
  };
}

function tokenBalance(account: SvmAccount | null, accountIndex: number): unknown[] {
  if (account?.programAddress !== TOKEN_PROGRAM || account.data.length !== 165) return [];
  const { mint, owner, amount } = tokenAccountOf(account.data);
  const decimals = mint === USDC ? 6 : 0;
  return [{ accountIndex, mint, owner, programId: TOKEN_PROGRAM, uiTokenAmount: amountOf(amount, decimals) }];
}

/** Formats a token amount like a node. */
export function amountOf(amount: bigint, decimals: number): Readonly<Record<string, unknown>> {
  const uiAmount = Number(amount) / 10 ** decimals;
  return { amount: String(amount), decimals, uiAmount, uiAmountString: String(uiAmount) };
}

function decode(wire: Uint8Array) {
  const transaction = getTransactionDecoder().decode(wire);
  const compiled = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  if (compiled.version !== 'legacy' && compiled.version !== 0) throw new Error('Transaction version is not supported.');
  return { transaction, compiled };
}

function hashOf(bytes: Iterable<number>): string {
  return createHash('sha256').update(Uint8Array.from(bytes)).digest('hex');
}

function blockhashOf(slot: number): string {
  return bs58.encode(createHash('sha256').update(`block ${slot} of the twin`).digest());
}

const BEFORE_IT_RUNS = [
  'AccountInUse',
  'AccountLoadedTwice',
  'AccountNotFound',
  'ProgramAccountNotFound',
  'InsufficientFundsForFee',
  'InvalidAccountForFee',
];
const INSTRUCTION_ERRORS = [
  'GenericError',
  'InvalidArgument',
  'InvalidInstructionData',
  'InvalidAccountData',
  'AccountDataTooSmall',
  'InsufficientFunds',
  'IncorrectProgramId',
  'MissingRequiredSignature',
];

/** Converts litesvm's error to the form of a node. */
function errorOf(err: unknown, instructions: number): string | Record<string, unknown> {
  if (typeof err === 'number') return BEFORE_IT_RUNS[err] ?? `TransactionError${err}`;
  const { index, err: cause } = err as { index?: number; err?: () => unknown };
  if (index === undefined || cause === undefined || index >= instructions) return 'SanitizeFailure';
  const reason = cause.call(err);
  if (typeof reason === 'number')
    return { InstructionError: [index, INSTRUCTION_ERRORS[reason] ?? `InstructionError${reason}`] };
  return { InstructionError: [index, { Custom: (reason as { code?: number }).code ?? 0 }] };
}
