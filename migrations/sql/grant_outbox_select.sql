-- whole rows: the relay sends the payload and reports on the rest
grant select on :"schema".aksara_operation_outbox to :"role";
