const NAME = 'tollgate.acts-for';
/** Paths of the API that members can call for an organisation. */
const TAKES =
  /^\/api\/v1\/(session\/|credits|generation|keys|analytics\/own|limits|members|statements|deposits|withdrawals|movements|wallets|topup|approvals|activity|provider-keys|refusals)/;

/** The organisation that this tab acts for, if the path supports that. Otherwise null: the signed-in account. */
export const actsFor = (path = '/api/v1/members'): string | null =>
  TAKES.test(path) ? sessionStorage.getItem(NAME) : null;

const PAYER = 'tollgate.payer';
/** Paths of the calls of the playground for which an organisation may pay. */
const PAID = /^\/api\/v1\/(chat\/completions|image\/|audio\/|embeddings|rerank|moderations)/;

/** The choice of the account that is signed in. */
export const OWN = 'own';

/** The payer of calls of the playground that was chosen in this tab: an organisation, or OWN. null before a choice. */
export const chosenPayer = (): string | null => sessionStorage.getItem(PAYER);

/** The organisation that pays for calls of the playground in this tab. null: the signed-in account. */
export const payer = (): string | null => (chosenPayer() === OWN ? null : chosenPayer());

/** The account that a request to this path is for. null: the signed-in account. */
export const accountFor = (path: string): string | null => (PAID.test(path) ? payer() : actsFor(path));

/** Sets who pays for the next calls of this tab: an organisation, or OWN. null takes the choice back. */
export const payBy = (account: string | null): void => put(PAYER, account);

/** Sets the account for the next requests of this tab. null is the signed-in account. */
export const actFor = (account: string | null): void => put(NAME, account);

function put(name: string, account: string | null): void {
  if (account === null) sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, account);
}
