export { METHODS as METHOD_OF } from '../../../../src/a2a/wire/methods.ts';
