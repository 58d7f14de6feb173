/** Tables that follow the log. A statement that names one must see everything that is in the log. */
const FOLLOWS = /\b(?:accounts|budgets|locks|transfers|journal|journal_batches|ledger_log)\b/i;

/** True if a statement names a table that follows the ledger's log. Names in its comments do not count. */
export const followsLog = (text: string): boolean => FOLLOWS.test(text.replaceAll(/^\s*--.*$/gm, ''));
