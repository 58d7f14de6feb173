/* What reading a provider's reply needs of the gateway. A worker that reads large ones loads no more of it. */
export { tooLarge, UpstreamFailure } from './call.ts';
export { GatewayError } from './errors.ts';
export { parseJson, TooMuchStructure, type JsonLimits } from './json-guard.ts';
