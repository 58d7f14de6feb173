/** The kind of a movement, by its id, or by the part of it before the first colon. */
export const KINDS: Readonly<Record<string, string>> = {
  credit: 'credit',
  debit: 'debit',
  refund: 'refund',
  close: 'closing',
  deposit: 'deposit',
  'deposit-given': 'deposit',
  withdrawal: 'withdrawal',
  'withdrawal-back': 'withdrawal_returned',
  'development-play-money': 'play_money',
};
/** Of these kinds the operator wrote the text for the owner of the account. */
export const WITH_REASON = new Set(['debit', 'refund', 'closing']);
