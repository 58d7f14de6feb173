/* Wallets of providers, without the proxy. */
export { createWallet } from './create-wallet.ts';
export { writeKeypairFile } from './keypair-file.ts';
export { loadSecret, loadWallet } from './load-wallet.ts';
export { signInHeader } from './sign-in-header.ts';
export { type Wallet, WalletError } from './wallet.ts';
