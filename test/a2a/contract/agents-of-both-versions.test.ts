import { contractSuite } from './contract-suite.ts';
import { gatewayTarget } from './gateway-target.ts';

// In development the gateway knows an address of its own, so agents tell it of their tasks and it need not ask.
const development = { mode: 'development' } as const;

contractSuite(gatewayTarget('an agent of both behind the gateway', 'both', { version: '1.0', binding: 'JSONRPC' }, development));
contractSuite(gatewayTarget('an agent of both behind the gateway', 'both', { version: '0.3', binding: 'JSONRPC' }, development));
