/** A wallet that this browser has, before it is asked for anything. */
export interface FoundWallet {
  /** Unique among those that were found. */
  readonly id: string;
  readonly name: string;
  /** A data URI; null where the wallet has none. */
  readonly icon: string | null;
  readonly family: WalletFamily;
  /** Asks its owner to connect. Rejects with WalletError. */
  connect(): Promise<ConnectedWallet>;
}

export type WalletFamily = 'eip155' | 'solana';

/** A wallet whose owner has let this page see its address. */
export interface ConnectedWallet {
  readonly name: string;
  readonly family: WalletFamily;
  /** EVM: in the form that the wallet gave. Solana: base58. */
  readonly address: string;
  /** CAIP-2 of the network that it is on. */
  readonly network: string;
  /** Signs a text. EVM: hex. Solana: base64. Rejects with WalletError. */
  signMessage(text: string): Promise<string>;
  /** Signs typed data of EIP-712 for a network (CAIP-2); null for a wallet of Solana. Rejects with WalletError. */
  readonly signTypedData: ((data: object, network: string) => Promise<string>) | null;
  /**
   * Signs a transaction of Solana (base64 in, base64 out) for a network (CAIP-2); null for a wallet that cannot.
   * Rejects with WalletError.
   */
  readonly signTransaction: ((transaction: string, network: string) => Promise<string>) | null;
}

/** A wallet refused, or could not do, what it was asked for. The message is for its owner. */
export class WalletError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'WalletError';
  }
}

/** The error of a wallet in words. `what` completes the sentence: "The wallet did not sign". */
export function walletError(error: unknown, what: string): WalletError {
  if (error instanceof WalletError) return error;
  const { code, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const text = typeof message === 'string' ? message : String(error);
  // EIP-1193; wallets of Solana say it in words alone.
  if (code === 4001 || /reject|denied|cancel/i.test(text))
    return new WalletError(`You refused in the wallet. Nothing was ${what}.`, error);
  if (code === -32_002)
    return new WalletError('The wallet waits for your answer to an earlier request. Open it.', error);
  return new WalletError(`The wallet said: ${text.slice(0, 200)}`, error);
}
