/** Tables that follow the log: whoever names one must see all that the log has. */
const FOLLOWS = /\b(?:accounts|budgets|locks|transfers|journal|journal_batches|ledger_log)\b/i;

/** Whether a statement names a table that follows the ledger's log. What its comments name does not count. */
export const followsLog = (text: string): boolean => FOLLOWS.test(text.replaceAll(/^\s*--.*$/gm, ''));
