const NAME = 'tollgate.acts-for';
/** The parts of the API that members take for an organisation. */
const TAKES =
  /^\/api\/v1\/(session\/|credits|generation|keys|analytics\/own|limits|members|deposits|withdrawals|wallets|topup)/;

/** The organisation that this tab acts for, if the path takes one; null: the account that is signed in. */
export const actsFor = (path = '/api/v1/members'): string | null =>
  TAKES.test(path) ? sessionStorage.getItem(NAME) : null;

/** From the next request of this tab on. null is the account that is signed in. */
export function actFor(account: string | null): void {
  if (account === null) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, account);
}
