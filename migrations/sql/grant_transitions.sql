-- the order of an operation's events while the supporting index isn't there: not built yet, or being rebuilt
grant select (id, operation_id, state_version) on :"schema".aksara_operation_transitions to :"role";
