import { treasuryOf } from '#billing';

/** Where the operator's credit comes from: money that the operator holds outside of any chain. */
export const OPERATOR_TREASURY = treasuryOf('operator');
