/** A wallet of this browser, before the page is connected to it. */
export interface FoundWallet {
  /** Unique among the found wallets. */
  readonly id: string;
  readonly name: string;
  /** A data URI. null if the wallet has no icon. */
  readonly icon: string | null;
  readonly family: WalletFamily;
  /** Asks the owner to connect the page. Rejects with WalletError. */
  connect(): Promise<ConnectedWallet>;
}

export type WalletFamily = 'eip155' | 'solana';

/** A wallet whose owner has shown its address to this page. */
export interface ConnectedWallet {
  readonly name: string;
  readonly family: WalletFamily;
  /** EVM: as the wallet returned it. Solana: base58. */
  readonly address: string;
  /** CAIP-2 id of its current network. */
  readonly network: string;
  /** Signs a text. Returns hex (EVM) or base64 (Solana). Rejects with WalletError. */
  signMessage(text: string): Promise<string>;
  /** Signs EIP-712 typed data for a network (CAIP-2). null for a Solana wallet. Rejects with WalletError. */
  readonly signTypedData: ((data: object, network: string) => Promise<string>) | null;
  /**
   * Signs a Solana transaction (base64 in, base64 out) for a network (CAIP-2). null if the wallet can't. Rejects with
   * WalletError.
   */
  readonly signTransaction: ((transaction: string, network: string) => Promise<string>) | null;
}

/** A wallet refused a request or couldn't do it. The message is for its owner. */
export class WalletError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'WalletError';
  }
}

/** Describes a wallet's error for its owner. `what` completes a sentence such as "Nothing was signed". */
export function walletError(error: unknown, what: string): WalletError {
  if (error instanceof WalletError) return error;
  const { code, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const text = typeof message === 'string' ? message : String(error);
  // The code is from EIP-1193. Solana wallets only have a message.
  if (code === 4001 || /reject|denied|cancel/i.test(text))
    return new WalletError(`You refused in the wallet. Nothing was ${what}.`, error);
  if (code === -32_002)
    return new WalletError('The wallet waits for your answer to an earlier request. Open it.', error);
  return new WalletError(`The wallet said: ${text.slice(0, 200)}`, error);
}
