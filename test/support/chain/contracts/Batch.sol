// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.37;

/// Several calls in one transaction; all of them or none.
contract Batch {
    struct Call {
        address target;
        bytes data;
    }

    function run(Call[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done, bytes memory answer) = calls[i].target.call(calls[i].data);
            if (!done) {
                assembly {
                    revert(add(answer, 32), mload(answer))
                }
            }
        }
    }
}
