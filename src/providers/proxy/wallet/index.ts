export { loadSecret, loadWallet, writeKeypairFile } from './load-wallet.ts';
export { type Wallet, WalletError, createWallet, signInHeader } from './wallet.ts';
