/**
 * Chains are set up in a way that cannot work. `message` says what is wrong and what would be right, and shows
 * nothing of a key.
 */
export class PaymentsSetupError extends Error {
  override readonly name = 'PaymentsSetupError';
}
