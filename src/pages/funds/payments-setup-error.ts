/**
 * The configuration of the chains can't work. `message` says what is wrong and what would be right, and never contains
 * a key.
 */
export class PaymentsSetupError extends Error {
  override readonly name = 'PaymentsSetupError';
}
