const NAME = 'tollgate.acts-for';
/** Paths of the API that members can call for an organisation. */
const TAKES =
  /^\/api\/v1\/(session\/|credits|generation|keys|analytics\/own|limits|members|deposits|withdrawals|movements|wallets|topup|approvals|activity|provider-keys)/;

/** The organisation that this tab acts for, if the path supports that. Otherwise null: the signed-in account. */
export const actsFor = (path = '/api/v1/members'): string | null =>
  TAKES.test(path) ? sessionStorage.getItem(NAME) : null;

/** Sets the account for the next requests of this tab. null is the signed-in account. */
export function actFor(account: string | null): void {
  if (account === null) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, account);
}
