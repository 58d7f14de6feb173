/* Wallets of providers, without the proxy. */
export { createWallet, signInHeader, type Wallet, WalletError } from './wallet.ts';
export { writeKeypairFile, loadSecret, loadWallet } from './load-wallet.ts';
