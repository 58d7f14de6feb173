/** The address of the page of an account. */
export const accountPage = (account: string): string => `/admin?tab=accounts&account=${encodeURIComponent(account)}`;

/** The address of the page of a provider. */
export const sellerPage = (provider: string): string => `/admin?tab=providers&provider=${encodeURIComponent(provider)}`;

/** The address of the page of one of its calls. */
export const callPage = (account: string, call: string): string =>
  `${accountPage(account)}&call=${encodeURIComponent(call)}`;
