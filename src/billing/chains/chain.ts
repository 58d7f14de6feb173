import type { MicroUsd } from '#billing';

/*
 * A chain, as the rules about money see it. Each family of chains implements it in its own folder (evm/, solana/);
 * deposits, withdrawals and reserves are written once against it. Every method may reject with ChainUnavailable. Then
 * the outcome is unknown, which never means that it failed.
 */

/** The PaymentRequirements of x402 v2. */
export interface PaymentRequirements {
  readonly scheme: string;
  /** CAIP-2 id. */
  readonly network: string;
  readonly asset: string;
  /** Micro-USD as a decimal number. */
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** The members of the PaymentPayload of x402 v2 that are read here. */
export interface PaymentPayload {
  readonly x402Version: number;
  readonly accepted: PaymentRequirements;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A payment that a client signed, read from its text. Nothing in it is verified. */
export interface SignedPayment {
  /**
   * The identity of the payment, the same for every sender and every repetition: EVM
   * `<network>/<asset>/<from>/<nonce>`, Solana `<network>/<SHA-256 of the message, hex>`.
   */
  readonly id: string;
  readonly network: string;
  /**
   * The paying wallet as a ledger account of an ordinary wallet: `eip155:<address in lower case>`, `solana:<address>`.
   */
  readonly payerAccount: string;
  readonly payer: string;
  readonly amount: MicroUsd;
  readonly requirements: PaymentRequirements;
  /** The memo that the payer signed (Solana), even if the requirements in the request differ. Absent without a memo. */
  readonly memo?: string;
  /** The client's payload, as JSON. It is sufficient to submit the payment again. */
  readonly payload: Readonly<Record<string, unknown>>;
  /**
   * When the payment was first read, in epoch milliseconds: it cannot have been submitted long before. Solana only. The
   * stored time counts, not the time in a repetition of the payment.
   */
  readonly readAt?: number;
}

/** One transfer of the asset into the treasury, as the chain reports it. */
export interface ChainEvent {
  /**
   * Unique on its network, until the chain undoes it: EVM `<transaction>:<log index>`, Solana `<signature>:<index>`, or
   * `<signature>:<token account>:<index>` if the transaction also pays the previous treasury.
   */
  readonly id: string;
  readonly transaction: string;
  /** The amount that arrived according to the chain, not the promised amount. */
  readonly amount: MicroUsd;
  /** Block number or slot. */
  readonly height: bigint;
  /** Blocks since then, its own block included. */
  readonly confirmations: number;
  /** The chain can no longer undo it. */
  readonly final: boolean;
}

/**
 * The state of a payment. `lost`: the chain has finally decided that it can never arrive. `open`: it has not arrived
 * and still may.
 */
export type PaymentSighting =
  | { readonly state: 'settled'; readonly event: ChainEvent }
  | { readonly state: 'open' }
  | { readonly state: 'lost'; readonly reason: string };

/** A transfer into the treasury by any sender. It is always final. */
export interface Incoming extends ChainEvent {
  readonly final: true;
  /**
   * Address of the sender; on Solana the owner of the token account. Empty if the transaction does not show the owner.
   */
  readonly sender: string;
  /** Id of the signed payment (SignedPayment.id) that the transfer executed; null for a plain transfer. */
  readonly paymentId: string | null;
  /** The memo of the transaction; null without one, and on chains without memos. */
  readonly memo: string | null;
}

/**
 * One page of incoming transfers. The next page begins at `cursor`. The first call has the cursor null: it begins at
 * the height that is final now and returns no events.
 */
export interface IncomingPage {
  readonly events: readonly Incoming[];
  readonly cursor: string;
  /** Block number or slot of the cursor. All transfers up to and including it are in this page or an earlier one. */
  readonly height: bigint;
  /** More transfers are already available. */
  readonly more: boolean;
}

/**
 * A payment that the treasury makes. Its id and address never change. It is signed again only if the earlier signature
 * is lost, so it pays only once.
 */
export interface ChainPayout {
  readonly id: string;
  readonly to: string;
  readonly amount: MicroUsd;
}

/** A payout before it is signed. */
export interface UnsignedPayout extends ChainPayout {
  /** Deducted from `amount` if the payout opens the receiver's token account (Solana). Default 0. */
  readonly tokenAccountFee?: MicroUsd;
}

/**
 * A signed payout. Its JSON text is stored before anything is broadcast. Anyone who has the text can submit it; it
 * contains no other secret.
 */
export interface SignedPayout {
  readonly text: string;
  /** Transaction id, if the signature determines it (Solana); else null. */
  readonly transaction: string | null;
  /**
   * Deducted from the amount because the payout opens a token account. The payout is less by it, and can execute only
   * if it opens the account. Absent: nothing is deducted.
   */
  readonly tokenAccountFee?: MicroUsd;
}

/** The fee that a signed payout deducts for a token account; 0 if it is not signed. */
export const accountFeeOf = (signed: SignedPayout | null): MicroUsd => signed?.tokenAccountFee ?? 0n;

/** `lost`: the signed text can never pay any more, so the payout may be signed again. */
export type PayoutSighting =
  | { readonly state: 'paid'; readonly transaction: string; readonly final: boolean; readonly height: bigint }
  | { readonly state: 'open' }
  | { readonly state: 'lost'; readonly reason: string };

export interface Chain {
  /** CAIP-2 id. */
  readonly network: string;
  readonly asset: string;
  /** The address that receives payments; on Solana the owner of the treasury's token account. */
  readonly treasury: string;
  /** Whether the signed part of a payment names the account that it is for: on Solana it does, in the memo. */
  readonly paymentsNameAccounts: boolean;
  /** The two treasuries during a handover from one treasury to another; absent at all other times. */
  readonly handover?: { readonly current: Chain; readonly previous: Chain };

  /**
   * Checks that the node serves this network and that the asset is the expected one. Creates what the first deposit
   * needs. Call it before any other method; it may be repeated.
   */
  open(): Promise<void>;
  /**
   * The complete requirements for a payment of `amount`. `account`: the account that the payment is for, on chains
   * whose payments name accounts; null: the paying wallet.
   */
  requirements(amount: MicroUsd, account: string | null): Promise<PaymentRequirements>;
  /**
   * The unsigned transaction of a payment, in base64, for wallets that sign transactions but do not build them; null if
   * the payer is no valid address. Absent if wallets sign the requirements themselves.
   */
  draft?(requirements: PaymentRequirements, payer: string): Promise<string | null>;
  /**
   * Parses a payment without any network request. Throws PaymentProblem if it is malformed, or pays another network,
   * asset or address than this chain's.
   */
  read(payment: PaymentPayload): SignedPayment;
  /**
   * Checks that the payment would succeed now. Resolves with the ledger account of the payer (for a contract wallet
   * `eip155:<chain>:<address>`). Rejects with PaymentProblem.
   */
  verify(payment: SignedPayment): Promise<{ readonly account: string }>;
  /**
   * Submits the payment to the chain or to the facilitator. It may be repeated and pays once. Resolves after the
   * submission, which proves nothing, with the transaction id if it is known. Rejects with ChainUnavailable, and with
   * PaymentProblem if it was refused before it was sent.
   */
  submit(payment: SignedPayment): Promise<{ readonly transaction: string | null }>;
  /**
   * Looks for the payment on the chain, never at the facilitator. `transaction` is a hint; a wrong one does no harm.
   */
  find(payment: SignedPayment, transaction: string | null): Promise<PaymentSighting>;

  /**
   * Lists final transfers into the treasury, up to the height `upTo`. Rejects with FinalityBroken if the block of the
   * cursor no longer exists.
   */
  incoming(cursor: string | null, upTo?: bigint): Promise<IncomingPage>;
  /**
   * The final balance of the treasury at a cursor from `incoming`; null if the chain does not (or no longer) report it
   * for that moment.
   */
  balanceAt(cursor: string): Promise<MicroUsd | null>;

  /** Checks whether an address can be paid on this chain. Returns null, or the fault. */
  addressFault(address: string): string | null;
  /**
   * Signs a payout without broadcasting it. `previous`: an earlier signed payout that is lost. This method decides
   * whether an account is opened, and so the paid amount; the result contains both. Rejects with ChainUnavailable, and
   * with PayoutProblem if the receiver cannot be paid.
   */
  sign(payout: UnsignedPayout, previous: SignedPayout | null): Promise<SignedPayout>;
  /** Broadcasts a signed payout. It may be repeated. Rejects with ChainUnavailable. */
  send(payout: ChainPayout, signed: SignedPayout): Promise<{ readonly transaction: string | null }>;
  /** Rejects with ChainUnavailable, and with PayoutUnreadable. */
  findPayout(payout: ChainPayout, signed: SignedPayout, transaction: string | null): Promise<PayoutSighting>;
  /** Address of the treasury that signed a payout. Throws PayoutUnreadable. */
  payerOf(signed: SignedPayout): string;

  close(): void;
}

export interface ChainSetup {
  readonly network: string;
  readonly rpcUrl: string;
  readonly asset: string;
  /** EIP-712 domain of the asset; null on Solana. */
  readonly assetName: string | null;
  readonly assetVersion: string | null;
  /** EVM: 32 bytes. Solana: the 64 bytes of a keypair. */
  readonly treasuryKey: Uint8Array;
  /** Key of the treasury that hands over to this one; absent or null without a handover. */
  readonly previousKey?: Uint8Array | null;
  /** `in-process`, or the URL of an x402 facilitator. */
  readonly facilitator: 'in-process' | URL;
  /** Blocks that make an event final; null: the node's `finalized` state counts. */
  readonly finality: number | null;
  /**
   * Solana: payouts create a missing token account of the receiver at the treasury's cost. The owner can close the
   * account and keep its deposit. Default false.
   */
  readonly opensAccounts?: boolean;
  /** EVM: stores balances that a node forgets. Absent: they are in memory until the process ends. */
  readonly snapshots?: SnapshotRows;
  /** Timeout for one answer of the node or the facilitator, in milliseconds. */
  readonly timeoutMs: number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** The balance of a treasury at the block in `cursor`. */
interface Snapshot {
  readonly cursor: string;
  readonly height: bigint;
  readonly balance: MicroUsd;
}

/** Snapshots of the treasuries of one network, by their addresses. Methods reject with the database's error. */
export interface SnapshotRows {
  /** At most `limit` snapshots, the newest first. */
  list(treasury: string, limit: number): Promise<readonly Snapshot[]>;
  /** Stores a snapshot. A repetition changes nothing. */
  keep(treasury: string, snapshot: Snapshot): Promise<void>;
  /** Removes snapshots below the height `below`. */
  forget(treasury: string, below: bigint): Promise<void>;
}

/** A refused payment. The message is for the payer. */
export class PaymentProblem extends Error {
  override readonly name = 'PaymentProblem';
  readonly code: 'invalid_request' | 'payment_expired' | 'payment_verification_failed' | 'insufficient_payment';
  constructor(code: PaymentProblem['code'], message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** A payout that its receiver cannot get. The message is for the owner of the money. Nothing was signed. */
export class PayoutProblem extends Error {
  override readonly name = 'PayoutProblem';
}

/** A refused withdrawal. The message is for the caller. */
export class WithdrawalProblem extends Error {
  override readonly name = 'WithdrawalProblem';
  readonly code:
    | 'invalid_request'
    | 'insufficient_balance'
    | 'idempotency_conflict'
    | 'rate_limit_exceeded'
    | 'unprocessable'
    | 'permission_denied'
    | 'service_unavailable';
  readonly param: string | undefined;
  constructor(code: WithdrawalProblem['code'], message: string, param?: string) {
    super(message);
    this.code = code;
    this.param = param;
  }
}

/**
 * The stored text of a signed payout cannot be read, or is the text of another payout. It is not known what it pays.
 */
export class PayoutUnreadable extends Error {
  override readonly name = 'PayoutUnreadable';
}

/**
 * A block that the chain reported as final has been replaced. Nothing that was built on it is reliable, and an operator
 * has to look.
 */
export class FinalityBroken extends Error {
  override readonly name = 'FinalityBroken';
}

/**
 * The node or the facilitator cannot be reached, is too slow, or gives an invalid answer. The request may or may not
 * have had its effect.
 */
export class ChainUnavailable extends Error {
  override readonly name = 'ChainUnavailable';
}

/** How soon the operator should look: `error` now, `warn` if the problem stays. */
type ProblemLevel = 'info' | 'warn' | 'error';

/** Called with a problem that an operator should look at. `facts` has the details, and the `error` if one exists. */
export type OnProblem = (level: ProblemLevel, problem: string, facts: Readonly<Record<string, unknown>>) => void;

/** An address in a normal form for comparisons. Addresses of EVM chains are written in upper, lower and mixed case. */
export const plainAddress = (network: string, address: string): string =>
  network.startsWith('eip155:') ? address.toLowerCase() : address;
