import type { MicroUsd } from '#billing';

/*
 * A chain, as the money rules need it. One folder for each family of chains implements it (evm/, solana/);
 * deposits, withdrawals and reserves are written once against it. Every method may reject with ChainUnavailable:
 * then nothing is known, which is never the same as failed.
 */

/** x402 v2's PaymentRequirements. */
export interface PaymentRequirements {
  readonly scheme: string;
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  /** Micro-USD, decimal. */
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** x402 v2's PaymentPayload, as far as it is read here. */
export interface PaymentPayload {
  readonly x402Version: number;
  readonly accepted: PaymentRequirements;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A payment that a client signed, as its text says it. Nothing of it is proven. */
export interface SignedPayment {
  /**
   * The identity of the payment, whoever brings it and however often: EVM `<network>/<asset>/<from>/<nonce>`,
   * Solana `<network>/<SHA-256 of the message, hex>`.
   */
  readonly id: string;
  readonly network: string;
  /**
   * The paying wallet as the ledger names an ordinary one: `eip155:<address in lower case>`, `solana:<address>`.
   */
  readonly payerAccount: string;
  /** Its address. */
  readonly payer: string;
  readonly amount: MicroUsd;
  readonly requirements: PaymentRequirements;
  /**
   * The memo that its payer signed (Solana), whatever the requirements say that came with it. Left out
   * without a memo.
   */
  readonly memo?: string;
  /** The client's payload: all that it takes to submit the payment again. JSON. */
  readonly payload: Readonly<Record<string, unknown>>;
  /**
   * When it was read first, epoch milliseconds: nobody had submitted it long before. Solana's; it counts as it was
   * kept, not as a repetition of the payment says it.
   */
  readonly readAt?: number;
}

/** One movement of the asset into the treasury, as the chain tells it. */
export interface ChainEvent {
  /**
   * Unique on its network as long as it stands: EVM `<transaction>:<log index>`, Solana `<signature>:<index>`, or
   * `<signature>:<token account>:<index>` where it pays the treasury before too.
   */
  readonly id: string;
  readonly transaction: string;
  /** The amount that arrived, as the chain tells it, not as anybody promised. */
  readonly amount: MicroUsd;
  /** Block number or slot. */
  readonly height: bigint;
  /** Blocks on top of it, itself included. */
  readonly confirmations: number;
  /** It can no longer be undone. */
  readonly final: boolean;
}

/**
 * The state of a payment. `lost`: it can never come any more, which the chain has finally decided. `open`: it has
 * not come and still may.
 */
export type PaymentSighting =
  | { readonly state: 'settled'; readonly event: ChainEvent }
  | { readonly state: 'open' }
  | { readonly state: 'lost'; readonly reason: string };

/** A transfer into the treasury, whoever made it. All of them are final. */
export interface Incoming extends ChainEvent {
  readonly final: true;
  /**
   * Address of the sender: of Solana the owner of the token account; empty where a transaction does not say whose
   * tokens came.
   */
  readonly sender: string;
  /** Id of the signed payment (SignedPayment.id) that it carried out; null for a plain transfer. */
  readonly paymentId: string | null;
  /** Text of the transaction's memo; null without one, and on chains that have none. */
  readonly memo: string | null;
}

/**
 * One page of what came in. `cursor` is where the next one begins; null before the first: the chain begins at what
 * is final now, and returns no events.
 */
export interface IncomingPage {
  readonly events: readonly Incoming[];
  readonly cursor: string;
  /**
   * Block number or slot of the cursor: what happened up to it, itself included, is in this page or an earlier one.
   */
  readonly height: bigint;
  /** More is there already. */
  readonly more: boolean;
}

/**
 * A payment that the treasury makes. Id and address never change, and it is signed anew only when what was signed
 * before is lost: however often it is signed, it pays once.
 */
export interface Payout {
  /** Id of the withdrawal. */
  readonly id: string;
  /** Receiving address. */
  readonly to: string;
  readonly amount: MicroUsd;
}

/** A payout to be signed. */
export interface UnsignedPayout extends Payout {
  /** Kept of `amount` where the payout opens the token account of its receiver (Solana). Default 0. */
  readonly tokenAccountFee?: MicroUsd;
}

/**
 * A signed payout: JSON text that is kept before anything is broadcast. Secret only in that whoever has it can
 * submit it.
 */
export interface SignedPayout {
  readonly text: string;
  /** Transaction id, where it is known from the signature (Solana). */
  readonly transaction: string | null;
  /**
   * Kept of the amount, as it opens a token account: it pays so much less, and can pay only if it opens the account.
   * Absent: nothing.
   */
  readonly tokenAccountFee?: MicroUsd;
}

/** The fee that a signed payout keeps for a token account; 0 for one that is not signed. */
export const accountFeeOf = (signed: SignedPayout | null): MicroUsd => signed?.tokenAccountFee ?? 0n;

/** `lost`: the signed text can never pay any more, so that it may be signed anew. */
export type PayoutSighting =
  | { readonly state: 'paid'; readonly transaction: string; readonly final: boolean; readonly height: bigint }
  | { readonly state: 'open' }
  | { readonly state: 'lost'; readonly reason: string };

export interface Chain {
  /** CAIP-2. */
  readonly network: string;
  /** Address of the token. */
  readonly asset: string;
  /** Address that is paid: of Solana the owner of the treasury's token account. */
  readonly treasury: string;
  /** Whether payments say whom they are for, in what their payer signs: Solana's, in the memo. */
  readonly paymentsNameAccounts: boolean;
  /** The two treasuries of a chain whose treasury takes over from another; absent on all others. */
  readonly handover?: { readonly current: Chain; readonly previous: Chain };

  /**
   * Checks that the node is of this network and the asset what it should be, makes what has to be there before the
   * first deposit. Call it before anything else; it may be repeated.
   */
  open(): Promise<void>;
  /**
   * The requirements of a payment of `amount`, complete. `account`: whom it is for, where payments name accounts;
   * null: the paying wallet.
   */
  requirements(amount: MicroUsd, account: string | null): Promise<PaymentRequirements>;
  /**
   * The unsigned transaction of a payment, in base64, for wallets that sign and build none; null for a payer that is no
   * address. Left out where wallets sign the requirements themselves.
   */
  draft?(requirements: PaymentRequirements, payer: string): Promise<string | null>;
  /**
   * Reads a payment without asking anybody. Throws PaymentProblem for what is malformed, or pays another network,
   * asset or address than this chain's.
   */
  read(payment: PaymentPayload): SignedPayment;
  /**
   * Whether the payment would succeed now. Resolves with the ledger account of who pays (a contract wallet's is
   * `eip155:<chain>:<address>`). Rejects with PaymentProblem.
   */
  verify(payment: SignedPayment): Promise<{ readonly account: string }>;
  /**
   * Gives the payment to the chain, or to the facilitator. Repeating it is safe: it pays once. Resolves when it was
   * handed over, which proves nothing; with the transaction's id where that is known. Rejects with
   * ChainUnavailable, and with PaymentProblem where it was refused before it was sent.
   */
  submit(payment: SignedPayment): Promise<{ readonly transaction: string | null }>;
  /** Asks the chain, never the facilitator. `transaction` is a hint; a wrong one does no harm. */
  find(payment: SignedPayment, transaction: string | null): Promise<PaymentSighting>;

  /**
   * Lists what came into the treasury and is final, no further than the height `upTo`. Rejects with FinalityBroken
   * where the cursor's place is gone.
   */
  incoming(cursor: string | null, upTo?: bigint): Promise<IncomingPage>;
  /**
   * The balance of the treasury at a cursor that `incoming` gave, in finality; null where the chain no longer (or
   * never) tells it for that moment.
   */
  balanceAt(cursor: string): Promise<MicroUsd | null>;

  /** Whether an address can be paid on this chain: null, or what is wrong with it. */
  addressFault(address: string): string | null;
  /**
   * Signs a payout. `previous` is what was signed before and is lost. Nothing is broadcast. Whether an account is
   * opened, and so what is paid, is decided here and told in the result. Rejects with ChainUnavailable, and with
   * PayoutProblem where its receiver cannot be paid.
   */
  sign(payout: UnsignedPayout, previous: SignedPayout | null): Promise<SignedPayout>;
  /** Broadcasts what was signed. Repeating it is safe. Rejects with ChainUnavailable. */
  send(payout: Payout, signed: SignedPayout): Promise<{ readonly transaction: string | null }>;
  findPayout(payout: Payout, signed: SignedPayout, transaction: string | null): Promise<PayoutSighting>;
  /** Address of the treasury that signed a payout. */
  payerOf(signed: SignedPayout): string;

  close(): void;
}

/** How a chain is set up. */
export interface ChainSetup {
  readonly network: string;
  readonly rpcUrl: string;
  readonly asset: string;
  /** EIP-712 domain of the asset; null on Solana. */
  readonly assetName: string | null;
  readonly assetVersion: string | null;
  /** EVM: 32 bytes. Solana: the 64 bytes of a keypair. */
  readonly treasuryKey: Uint8Array;
  /** Key of the treasury that hands over to this one; absent or null where none does. */
  readonly previousKey?: Uint8Array | null;
  /** `in-process`, or the address of an x402 facilitator. */
  readonly facilitator: 'in-process' | URL;
  /** Blocks that make an event final; null: what the node calls finalized. */
  readonly finality: number | null;
  /**
   * Solana: payouts make, at the treasury's cost, the token account of a receiver that has none. Its owner can
   * close it and keep what it cost. Default false.
   */
  readonly opensAccounts?: boolean;
  /** EVM: where balances are kept that a node forgets. Absent: in memory, until the process ends. */
  readonly snapshots?: SnapshotRows;
  /** Time for one answer of the node or of the facilitator. */
  readonly timeoutMs: number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** The balance of a treasury at a block, which `cursor` names. */
interface Snapshot {
  readonly cursor: string;
  readonly height: bigint;
  readonly balance: MicroUsd;
}

/** Snapshots of the treasuries of one network, by their addresses. Methods reject with the database's error. */
export interface SnapshotRows {
  /** At most `limit`, the newest first. */
  list(treasury: string, limit: number): Promise<readonly Snapshot[]>;
  /** The same again changes nothing. */
  keep(treasury: string, snapshot: Snapshot): Promise<void>;
  /** Removes those of a lower height. */
  forget(treasury: string, below: bigint): Promise<void>;
}

/** A payment that is refused, in words for its payer. */
export class PaymentProblem extends Error {
  override readonly name = 'PaymentProblem';
  readonly code: 'invalid_request' | 'payment_expired' | 'payment_verification_failed' | 'insufficient_payment';
  constructor(code: PaymentProblem['code'], message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** A payout that cannot be made, as its receiver is: in words for its owner. Nothing was signed. */
export class PayoutProblem extends Error {
  override readonly name = 'PayoutProblem';
}

/**
 * A block that the chain had called final is another now: nothing that was built on it can be relied on, and
 * somebody has to look.
 */
export class FinalityBroken extends Error {
  override readonly name = 'FinalityBroken';
}

/**
 * The node or the facilitator cannot be reached, is too slow, or answers nonsense. What was asked for may or may
 * not have happened.
 */
export class ChainUnavailable extends Error {
  override readonly name = 'ChainUnavailable';
}
