export * from './money.ts';
export * from './price.ts';
export * from './ledger.ts';
export * from './bill.ts';
