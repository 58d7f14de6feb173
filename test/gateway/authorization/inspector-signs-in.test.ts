import { startInspector } from './support/programs.ts';
import { testPrograms } from './support/programs-sign-in.ts';

/* The program of the test packages that signs in by itself. Larger ones are in programs-sign-in.test.ts. */

testPrograms({ 'MCP Inspector': startInspector });
