/** The address of the page of an account. */
export const accountPage = (account: string): string => `/admin?tab=accounts&account=${encodeURIComponent(account)}`;

/** The address of the page of a provider. */
export const sellerPage = (provider: string): string => `/admin?tab=providers&provider=${encodeURIComponent(provider)}`;

/** The address of the page of a call. `account`: who made it, where that is known; the empty text where not. */
export const callPage = (account: string, call: string): string =>
  `${account === '' ? '/admin?tab=accounts' : accountPage(account)}&call=${encodeURIComponent(call)}`;

/** The address of the list of services, of those with this text in their names. */
export const servicesPage = (text: string): string => `/admin?tab=services&q=${encodeURIComponent(text)}`;
