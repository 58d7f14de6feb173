import { contractSuite } from './contract-suite.ts';
import { gatewayTarget } from './gateway-target.ts';

contractSuite(gatewayTarget('an agent of both behind the gateway', 'both', { version: '1.0', binding: 'JSONRPC' }));
contractSuite(gatewayTarget('an agent of both behind the gateway', 'both', { version: '0.3', binding: 'JSONRPC' }));
