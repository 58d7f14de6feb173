export { createWallet } from './create-wallet.ts';
export { writeKeypairFile } from './keypair-file.ts';
export { loadSecret, loadWallet, type WalletSource } from './load-wallet.ts';
export { signInHeader, type SignIn } from './sign-in-header.ts';
export { WalletError, type Wallet } from './wallet.ts';
